#!/usr/bin/env python3
"""Everything that is checked, in one command; the last line is "N passed, N failed".

Steps run one after another; each yields counts (from JUnit reports, or one for a step that is a check as a whole). A step
that fails shows its output. --quick leaves out the sanitizer builds, --only NAME[,NAME] runs some steps, --list names them.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
BUILD = ROOT / "build"
ENV = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
SHARED_CORPUS = ROOT.parent / "shared" / "corpus"


def run(*command: object, env: dict[str, str] | None = None, show: bool = True) -> tuple[int, str]:
    """Exit status and output of a command; the output is shown when it failed and `show` is set."""
    p = subprocess.run(
        [str(c) for c in command], cwd=ROOT, env={**ENV, **(env or {})}, text=True, errors="replace", check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if p.returncode and show:
        sys.stdout.write(p.stdout[-20000:])
    return p.returncode, p.stdout


def junit(path: Path) -> tuple[int, int, int]:
    """passed, failed, skipped of a JUnit report."""
    passed = failed = skipped = 0
    for case in ET.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def whole(rc: int) -> tuple[int, int, int]:
    return (1, 0, 0) if rc == 0 else (0, 1, 0)


def meson_tests(name: str, setup: list[str], env: dict[str, str], arguments: list[str]) -> tuple[int, int, int]:
    build = BUILD / name
    if not (build / "build.ninja").exists():
        rc, _ = run("meson", "setup", build, *setup, env={"CC": env.get("CC", "cc")})
        if rc:
            return 0, 1, 0
    rc, _ = run("ninja", "-C", build)
    if rc:
        return 0, 1, 0
    report = build / "meson-logs" / "testlog.junit.xml"
    report.unlink(missing_ok=True)
    rc, _ = run("meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs", *arguments, env=env)
    if not report.exists():
        return 0, 1, 0
    passed, failed, skipped = junit(report)
    return passed, failed or (1 if rc else 0), skipped


def release() -> tuple[int, int, int]:
    """Unit, simulation and wire tests of the release build, with -Werror."""
    return meson_tests("release", ["-Dwerror=true"], {}, [])


def asan() -> tuple[int, int, int]:
    """The same under AddressSanitizer and UndefinedBehaviorSanitizer."""
    options = ["-Db_sanitize=address,undefined", "-Dbuildtype=debugoptimized", "-Db_lundef=false"]
    env = {
        "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1:detect_stack_use_after_return=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1", "HEADRACE_TEST_SHORT": "1",
    }  # fmt: skip
    return meson_tests("asan", options, env, ["--timeout-multiplier", "4", "--no-suite", "peers"])


def tsan() -> tuple[int, int, int]:
    """What has threads, under ThreadSanitizer."""
    options = ["-Db_sanitize=thread", "-Dbuildtype=debugoptimized", "-Db_lundef=false"]
    env = {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1", "HEADRACE_TEST_SHORT": "1"}
    return meson_tests("tsan", options, env, ["--timeout-multiplier", "6", "--no-suite", "peers", *THREADED])


def exports() -> tuple[int, int, int]:
    """Every exported symbol is hr_* and in the header."""
    rc, out = run("sh", "-c", "nm -D --defined-only build/release/src/libheadrace.so | awk '$2 ~ /[TDBR]/ {print $3}'")
    exported = {s.partition("@")[0] for s in out.split()} - {"HEADRACE_0.1"}
    declared = set(re.findall(r"\b(hr_[a-z0-9_]+)\(", (ROOT / "include" / "headrace.h").read_text()))
    wrong = sorted(s for s in exported if not s.startswith("hr_") or s not in declared)
    missing = sorted(
        set(re.findall(r"HR_API[^;]*?\b(hr_[a-z0-9_]+)\(", (ROOT / "include" / "headrace.h").read_text())) - exported
    )
    for s in wrong:
        print(f"exported but not in headrace.h: {s}")
    for s in missing:
        print(f"in headrace.h but not exported: {s}")
    return whole(rc or len(wrong) + len(missing))


def corpus() -> tuple[int, int, int]:
    """The whole corpus beside the project, where it is there; each case is a test."""
    if not SHARED_CORPUS.is_dir():
        print("  corpus: not beside this checkout; the groups the project owns are run by pytest all the same")
        return 0, 0, 1
    cat = BIN / "headrace"
    total = [0, 0, 0]
    for extra in ([], ["--mem", "1024"]):
        _, out = run(
            sys.executable, SHARED_CORPUS / "check.py", "-q", "--only", "zarr2,zarr3", "--cmd", f"{cat} cat {{store}} {{array}}",
            "--cf-cmd", f"{cat} cat --decode --dtype {{dtype}} {{store}} {{array}}", *extra, SHARED_CORPUS, show=False,
        )  # fmt: skip
        failed = re.findall(r"^FAIL (\S+)\n((?: {5}.*\n)*)", out, re.M)
        refused = [n for n, text in failed if re.search("pcodec|imagecodecs_tiff", text)]
        for name, text in failed:
            if name not in refused:
                print(f"  FAIL {name}\n{text}", end="")
        match = re.search(r"(\d+) passed, (\d+) failed", out)
        if not match:
            print(out[-2000:])
            return 0, 1, 0
        total[0] += int(match[1])
        total[1] += int(match[2]) - len(refused)
        total[2] += len(refused)
        if refused:
            print(f"  skipped, refused by name (pcodec, imagecodecs_tiff): {', '.join(refused)}")
    return total[0], total[1], total[2]


def python() -> tuple[int, int, int]:
    """pytest: the package, the command line, the golden archives, the documentation's examples."""
    if importlib.util.find_spec("xdist") is None:
        return pytest("pytest")
    # More than cores: they wait most of the time. Files stay whole, because servers are started once for each.
    workers = min(len(os.sched_getaffinity(0)) + 1, 6)
    beside = pytest("pytest", f"-n{workers}", "--dist=loadfile", "--no-loadscope-reorder", "-m", "not alone")
    alone = pytest("pytest-alone", "-m", "alone")
    return beside[0] + alone[0], beside[1] + alone[1], beside[2] + alone[2]


def pytest(name: str, *arguments: str) -> tuple[int, int, int]:
    report = BUILD / f"{name}.xml"
    report.parent.mkdir(exist_ok=True)
    report.unlink(missing_ok=True)
    rc, out = run(sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", "-rs", "--durations=5", *arguments)
    for line in out.splitlines():
        if line.startswith("SKIPPED"):
            print("  " + line)
    if not report.exists():
        return 0, 1, 0
    passed, failed, skipped = junit(report)
    return passed, failed or (1 if rc not in (0, 5) else 0), skipped


def wheel() -> tuple[int, int, int]:
    """The wheel is built, installed in clean environments and imported on the Pythons found."""
    rc, out = run("tools/wheel.sh")
    print("".join(f"  {line}\n" for line in out.splitlines()), end="")
    return whole(rc)


def fuzz() -> tuple[int, int, int]:
    """A short run of every fuzz target."""
    rc, out = run("tools/fuzz.sh", os.environ.get("FUZZ_SECONDS", "5"))
    match = re.search(r"(\d+) targets, (\d+) failed", out)
    return (int(match[1]) - int(match[2]), int(match[2]), 0) if match else whole(rc or 1)


def lint() -> tuple[int, int, int]:
    """clang-format, cppcheck, ruff, mypy."""
    sources = subprocess.run(
        ["git", "ls-files", "*.c", "*.h"], cwd=ROOT, text=True, capture_output=True, check=True
    ).stdout.split()
    results = [
        run("clang-format-14", "--dry-run", "-Werror", *sources)[0],
        run(
            "cppcheck",
            "-j2",
            "--quiet",
            "--error-exitcode=1",
            "--enable=warning,portability",
            "--std=c11",
            "--inline-suppr",
            "--suppress=missingInclude",
            "-Iinclude",
            "-Isrc",
            "src",
            "cli",
        )[0],
        run("ruff", "check", ".")[0],
        run("ruff", "format", "--check", ".")[0],
        run("mypy", "-p", "headrace", env={"MYPYPATH": "python"})[0],
    ]
    return sum(r == 0 for r in results), sum(r != 0 for r in results), 0


# What runs threads; meson takes patterns of test names.
THREADED = [
    "unit/base/thread",
    "unit/format/sparse",
    *(f"unit/{room}/*" for room in ("batch", "net", "store", "api")),
    "wire/*",
]

STEPS = {
    "release": release,
    "exports": exports,
    "corpus": corpus,
    "python": python,
    "lint": lint,
    "asan": asan,
    "tsan": tsan,
    "fuzz": fuzz,
    "wheel": wheel,
}
QUICK = ["release", "exports", "corpus", "python", "lint"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        print("\n".join(f"{name:9} {' '.join((step.__doc__ or '').split())}" for name, step in STEPS.items()))
        return 0
    names = options.only.split(",") if options.only else QUICK if options.quick else list(STEPS)
    total = [0, 0, 0]
    for name in names:
        start = time.time()
        print(f"{name}: {' '.join((STEPS[name].__doc__ or '').split())}", flush=True)
        try:
            counts = STEPS[name]()
        except Exception as error:
            print(f"  {name} could not run: {error}")
            counts = (0, 1, 0)
        total = [a + b for a, b in zip(total, counts)]
        print(
            f"  {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped in {time.time() - start:.0f} s", flush=True
        )
    print(f"{total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
