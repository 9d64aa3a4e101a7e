"""Break each arrow in a small tree of its own and see that tools/check_rooms.py says so."""

import pathlib
import subprocess
import sys
import tempfile

TOOL = sys.argv[1]
results = []

CLEAN = {
    "src/base/mem.h": "",
    "src/base/thread.h": "#include <pthread.h>\n",
    "src/codec/chain.h": '#include "base/mem.h"\n',
    "src/format/reader.c": '#include "format/reader.h"\n#include "codec/chain.h"\n#include "headrace.h"\n',
    "src/format/reader.h": "",
    "src/net/net.c": '#include <curl/curl.h>\n#include "base/thread.h"\n',
    "src/plan/plan.h": '#include "base/mem.h"\n',
    "src/engine/engine.c": '#include "plan/plan.h"\n#include "base/mem.h"\n',
    "src/batch/batch.c": "#include <pthread.h>\n",
    "src/run/driver.c": '#include "base/thread.h"\n#include "net/net.h"\n',
    "src/api/open.c": '#include "run/driver.h"\n',
    "cli/main.c": '#include "headrace.h"\n#include "text.h"\n',
    "cli/text.h": "",
    "python/ext/loader.c": '#include <Python.h>\n#include "headrace.h"\n',
}
SYMBOLS = [
    "\nbase_mem.c.o:\n                 U malloc",
    "\nbase_buf.c.o:\n                 U memcpy\n                 U __snprintf_chk",
]


def tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def check(what, files, want, library=None, symbols=()):
    """want: None for a clean tree, else a part of the fault that must be the only one."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        tree(
            root,
            {**CLEAN, **files, "symbols": "\n".join(symbols) + "\n", "nm": "#!/bin/sh\ncat " + folder + "/symbols\n"},
        )
        (root / "nm").chmod(0o755)
        command = [sys.executable, TOOL, "--source", folder, "--stamp", folder + "/stamp", "--nm", folder + "/nm"]
        run = subprocess.run(command + ([library] if library else []), check=False, capture_output=True, text=True)
        faults = run.stderr.splitlines()
        ok = (run.returncode, len(faults)) == ((0, 0) if want is None else (1, 1)) and (
            want is None or want in faults[0]
        )
        ok = ok and (root / "stamp").exists() == (want is None)
    results.append(ok)
    for line in [] if ok else [f"exit {run.returncode}", *faults]:
        print("#", line)
    print(f"{'ok' if ok else 'not ok'} {len(results)} - {what}")


def symbol(what, library, member, name, want):
    check(what, {}, want, library, [*SYMBOLS, f"\n{member}:\n                 U {name}"])


check("a tree that keeps its arrows passes", {}, None)
check(
    "plan may not include the engine above it",
    {"src/plan/a.c": '#include "engine/engine.h"\n'},
    "breaks the arrow engine -> plan",
)
check("base knows nothing above it", {"src/base/a.c": '\n#  include "codec/chain.h"\n'}, "src/base/a.c:2:")
check(
    "net and format do not see each other",
    {"src/net/a.c": '#include "format/reader.h"\n'},
    "breaks the arrow format -> net",
)
check("store may not decode", {"src/store/a.c": '#include "codec/chain.h"\n'}, "breaks the arrow codec -> store")
check("curl belongs to net", {"src/store/a.c": "#include <curl/curl.h>\n"}, "only net may include it")
check(
    "threads stay out of the engine", {"src/engine/a.c": '#include "base/thread.h"\n'}, "brings threads and the clock"
)
check(
    "also through another header",
    {"src/base/b.h": '#include "base/thread.h"\n', "src/plan/a.c": '#include "base/b.h"\n'},
    "brings threads and the clock",
)
check("batch has a lock but no clock", {"src/batch/a.c": '#include "base/thread.h"\n'}, "<pthread.h>")
check("pthreads stay out of codec", {"src/codec/a.h": "#include <pthread.h>\n"}, "<pthread.h> in codec")
check("an include is written from src", {"src/codec/a.c": '#include "chain.h"\n'}, 'as "room/name.h"')
check(
    "the command line uses the public header alone", {"cli/a.c": '#include "base/mem.h"\n'}, "cli uses headrace.h alone"
)
check("so does the extension", {"python/ext/a.c": '#include "run/driver.h"\n'}, "python uses headrace.h alone")
check("a new room needs arrows", {"src/cloud/a.c": ""}, "a room without arrows")
symbol("clean symbols pass", "libplan.a", "plan_a.c.o", "snprintf@GLIBC_2.2.5", None)
symbol(
    "the plan reads no files",
    "libplan.a",
    "plan_a.c.o",
    "pread64@GLIBC_2.2.5",
    "plan_a.c.o uses pread64: input and output",
)
symbol("the engine has no clock", "libengine.a", "engine_a.c.o", "clock_gettime@GLIBC_2.17", "the clock")
symbol("codec starts no threads", "libcodec.a", "codec_a.c.o", "pthread_create@GLIBC_2.34", "threads")
symbol("format reads no environment", "libformat.a", "format_a.c.o", "getenv", "the environment")
symbol("fortified names count too", "libformat.a", "format_a.c.o", "__printf_chk@GLIBC_2.3.4", "printing")
symbol("net may use sockets", "libnet.a", "net_a.c.o", "connect", None)
symbol("nobody prints", "librun.a", "run_a.c.o", "puts", "printing")
symbol("nobody ends the process", "libstore.a", "store_a.c.o", "abort", "ending the process")
symbol("the heap has one door", "librun.a", "run_a.c.o", "malloc", "base/mem.h")
symbol("the environment is for api and credentials", "libstore.a", "store_s3.c.o", "getenv", "environment")
symbol("credentials may read it", "libstore.a", "store_cred_aws.c.o", "getenv", None)
print(f"1..{len(results)}")
sys.exit(not all(results))
