"""Every golden archive decodes to the recorded hash, or is refused with a message, within 1 GiB of address space.

HEADRACE_CLI names another build of the command line (a sanitizer's); HEADRACE_MEMORY=0 lifts the limit for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent / "corpus"
CLI = os.environ.get("HEADRACE_CLI") or str(Path(sys.executable).parent / "headrace")
LIMIT = int(os.environ.get("HEADRACE_MEMORY", 1 << 30))

CASES = sorted(p.parent for p in HERE.glob("*/*/expect.json"))


def limit() -> None:
    if LIMIT:
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def cat(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([CLI, "cat", *arguments], capture_output=True, timeout=120, check=False, preexec_fn=limit)


def check(label: str, done: subprocess.CompletedProcess[bytes], want: str | None) -> None:
    assert 0 <= done.returncode < 128, f"{label}: crashed: {done.stderr[-2000:]!r}"
    if want is None:
        assert done.returncode, f"{label}: accepted, {len(done.stdout)} bytes"
        assert done.stderr.strip(), f"{label}: refused without a message"
    else:
        assert not done.returncode, f"{label}: {done.stderr.decode()}"
        assert hashlib.sha256(done.stdout).hexdigest() == want, f"{label}: wrong bytes ({len(done.stdout)} printed)"


@pytest.mark.parametrize("case", CASES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_case(case: Path) -> None:
    expect: dict[str, Any] = json.loads((case / "expect.json").read_text())
    store = str(case / expect["store"])
    for path, want in expect["arrays"].items():
        check(path or "/", cat(store, path), want.get("sha256"))
    for path, want in expect.get("cf", {}).items():
        for dtype in ("f4", "f8"):
            digest = want.get(f"{dtype}_sha256") or (want["sha256"] if want["dtype"] == "<" + dtype else None)
            if digest:
                check(f"{path} as {dtype}", cat("--decode", "--dtype", dtype, store, path), digest)
