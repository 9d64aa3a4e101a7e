#!/usr/bin/env python3
"""Hold the tree against its own map (docs/design.md §5): run in every build, and a broken arrow fails it.

Two things are checked, because each sees what the other cannot:

- the #include lines of src/, cli/ and python/: a room may include itself and what its arrows reach, curl.h belongs to
  net, threads and clock never reach a pure room, cli and python see headrace.h alone;
- the undefined symbols of the static libraries (nm): no I/O, thread, clock, randomness or environment in the pure
  rooms, and in all of the library no printing, no ending of the process, no heap but base/mem.h.

    tools/check_rooms.py --source DIR [--stamp FILE] [--nm NM] LIBRARY...

Prints one line per fault, file and rule, and exits 1 if there was one.
"""

import argparse
import fnmatch
import pathlib
import re
import subprocess
import sys

ARROWS = {  # room: the rooms it is built on; what those may include, it may too
    "base": [],
    "codec": ["base"],
    "format": ["codec"],
    "net": ["base"],
    "store": ["net"],
    "plan": ["base"],
    "engine": ["plan"],
    "batch": ["plan", "codec"],
    "run": ["engine", "format", "codec", "store", "batch"],
    "api": ["run"],
}
PURE = ["plan", "engine", "format", "codec"]
NO_THREADS = [*PURE, "batch"]  # of base/thread.h; batch has a lock of its own, but no clock and no thread
SOURCES = (".c", ".h", ".inc")

# System headers and the only rooms that may include them.
HEADERS = {
    "curl/*": ["net"],
    "Python.h": ["python"],
    "pthread.h": [r for r in ARROWS if r not in PURE],
    "threads.h": [],
    "sys/socket.h": ["net", "store"],
    "netdb.h": ["net", "store"],
}

# Undefined symbols, by what they do. Names are compared without leading "__", trailing "_chk" and "64".
FORBIDDEN_IN_PURE = {
    "input and output": """open openat creat read pread readv preadv write pwrite writev pwritev close lseek dup fcntl
        ioctl mmap munmap madvise fopen fdopen freopen fclose fread fwrite fgets fputs fgetc getc fputc putc fseek ftell
        fflush getline stat fstat lstat fstatat access unlink rename mkdir rmdir opendir readdir closedir pipe stdin
        stdout stderr scanf fscanf getchar posix_fadvise readlink realpath mkstemp""",
    "the network": """socket connect bind listen accept send sendto sendmsg recv recvfrom recvmsg poll ppoll select
        epoll_* eventfd getaddrinfo gethostbyname curl_*""",
    "threads": "pthread_* thrd_* mtx_* cnd_* sem_* sched_* fork vfork clone call_once",
    "the clock": """clock clock_gettime clock_nanosleep time gettimeofday nanosleep usleep sleep timer_* localtime
        localtime_r""",
    "randomness": "rand rand_r srand random srandom *rand48 getrandom getentropy arc4random*",
    "the environment": "getenv secure_getenv setenv putenv unsetenv environ setlocale sysconf getpid gethostname",
}
FORBIDDEN_EVERYWHERE = {
    "printing (errors travel in struct hr_error, log lines in hr_log_next)": """printf vprintf fprintf vfprintf puts
        putchar perror dprintf vdprintf psignal""",
    "ending the process": "abort exit _exit _Exit quick_exit atexit err errx warn warnx error",
    "running programs": "system popen execv* execl*",
}
HEAP = """malloc calloc realloc reallocarray free posix_memalign aligned_alloc memalign strdup strndup asprintf
    vasprintf getline getdelim open_memstream"""
HEAP_OBJECTS = ["base_mem.c.o"]
ENVIRONMENT = "getenv secure_getenv"
ENVIRONMENT_OBJECTS = ["api_*", "store_cred*", "libheadrace*"]


def reach(room):
    seen, todo = {room}, [room]
    while todo:
        for below in ARROWS[todo.pop()]:
            if below not in seen:
                seen.add(below)
                todo.append(below)
    return seen


INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)


class Includes:
    def __init__(self, source):
        self.source, self.faults, self.lines = source, [], {}

    def of(self, path):
        """(line, is quoted, name) of each #include of a file."""
        if path not in self.lines:
            text = path.read_text(errors="replace")
            self.lines[path] = [
                (text.count("\n", 0, m.start(2)) + 1, m[1] == '"', m[2]) for m in INCLUDE.finditer(text)
            ]
        return self.lines[path]

    def fault(self, path, line, text):
        self.faults.append(f"{path.relative_to(self.source)}:{line}: {text}")

    def check_system(self, room, path, line, name):
        for pattern, rooms in HEADERS.items():
            if fnmatch.fnmatch(name, pattern) and room not in rooms:
                self.fault(path, line, f"<{name}> in {room}; only {', '.join(rooms) or 'nobody'} may include it")

    def check_room(self, room):
        allowed = reach(room)
        for path in files(self.source / "src" / room):
            for line, quoted, name in self.of(path):
                other = name.split("/")[0]
                if not quoted:
                    self.check_system(room, path, line, name)
                elif name == "headrace.h":
                    pass
                elif "/" not in name or other not in ARROWS or ".." in name:
                    self.fault(path, line, f'"{name}": write it from src/, as "room/name.h"')
                elif other not in allowed:
                    self.fault(
                        path,
                        line,
                        f'"{name}" breaks the arrow {other} -> {room}; {room} may include {", ".join(sorted(allowed))}',
                    )
                elif room in NO_THREADS and self.leads_to(name, "base/thread.h"):
                    lock = "; a lock alone needs <pthread.h>" if room in HEADERS["pthread.h"] else ""
                    self.fault(path, line, f'"{name}" brings threads and the clock into {room}{lock}')

    def leads_to(self, name, target, seen=()):
        if name == target:
            return True
        path = self.source / "src" / name
        return (
            name not in seen
            and path.is_file()
            and any(self.leads_to(inner, target, (*seen, name)) for _, quoted, inner in self.of(path) if quoted)
        )

    def check_outside(self, top):
        """cli and python: headrace.h, and headers of their own."""
        own = {p.name for p in files(self.source / top)}
        for path in files(self.source / top):
            for line, quoted, name in self.of(path):
                if not quoted:
                    self.check_system(top, path, line, name)
                elif name != "headrace.h" and pathlib.PurePath(name).name not in own:
                    self.fault(path, line, f'"{name}": {top} uses headrace.h alone')


def files(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in SOURCES and p.is_file())


def names(text):
    return re.compile("|".join(fnmatch.translate(word) for word in text.split()))


def undefined(nm, library):
    """(object, symbol as written, symbol to compare) of each undefined symbol."""
    out = subprocess.run([nm, "-u", library], check=False, capture_output=True, text=True, errors="replace")
    if out.returncode:
        sys.exit(f"check_rooms: {nm} -u {library}: {out.stderr.strip()}")
    member = pathlib.Path(library).name
    for line in out.stdout.splitlines():
        if line.endswith(":"):
            member = pathlib.PurePath(line[:-1]).name
        elif line.split():
            symbol = line.split()[-1].split("@")[0]
            bare = re.sub(r"^__(isoc\d\d_)?|_chk$", "", symbol)
            yield member, symbol, re.sub(r"64$", "", bare)


def check_symbols(nm, library):
    room = re.sub(r"^lib|\.a$", "", pathlib.Path(library).name)
    rules = [(what, names(text), ()) for what, text in FORBIDDEN_EVERYWHERE.items()]
    rules.append(("the heap (allocate through base/mem.h)", names(HEAP), HEAP_OBJECTS))
    rules.append(("the environment (only api/ and store/cred* read it)", names(ENVIRONMENT), ENVIRONMENT_OBJECTS))
    if room in PURE:
        rules = [
            (f"{what} in the pure room {room}", names(text), ()) for what, text in FORBIDDEN_IN_PURE.items()
        ] + rules
    faults = []
    for member, symbol, bare in undefined(nm, library):
        for what, pattern, exempt in rules:
            if pattern.match(bare) and not any(fnmatch.fnmatch(member, e) for e in exempt):
                faults.append(f"{pathlib.Path(library).name}: {member} uses {symbol}: {what}")
                break
    return faults


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--source", type=pathlib.Path, required=True)
    arguments.add_argument("--stamp", type=pathlib.Path)
    arguments.add_argument("--nm", default="nm")
    arguments.add_argument("libraries", nargs="*")
    a = arguments.parse_args()
    includes = Includes(a.source)
    for folder in sorted(p.name for p in (a.source / "src").iterdir() if p.is_dir()):
        if folder in ARROWS:
            includes.check_room(folder)
        elif files(a.source / "src" / folder):
            includes.faults.append(f"src/{folder}: a room without arrows; add it to docs/design.md §5 and ARROWS")
    for top in ("cli", "python"):
        includes.check_outside(top)
    faults = includes.faults + [f for library in a.libraries for f in check_symbols(a.nm, library)]
    print(*(f"check_rooms: {f}" for f in faults), sep="\n", end="\n" if faults else "", file=sys.stderr)
    if not faults and a.stamp:
        a.stamp.touch()
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
