"""The commands of the `headrace` program that are made in Python: what needs numpy, pictures and progress bars.

The program hands over by running ``python -m headrace._cli COMMAND …``. ``import headrace`` imports nothing of it.
"""

from __future__ import annotations

import sys

USAGE = "headrace: this is where the headrace program goes on in Python: headrace demo, headrace cells, headrace verify"
CELLS = ("numpy", "rich", "anndata", "h5py", "zarr")  # pyarrow: for features of SCDL alone
NEEDED = {
    "demo": ("demo", ("numpy", "zarr", "h5py", "rich", "iris_sample_data")),
    "cells": ("cells", CELLS),
    "verify": ("cells", ("numpy", "rich")),
}  # by command: the extra that brings them, and the modules


def main(argv: list[str] | None = None) -> int:
    """Run a command; the exit status: 0 success, 1 failure, 2 wrong usage."""
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] not in NEEDED:
        print(USAGE, file=sys.stderr)
        return 2
    command = words[0]
    extra, modules = NEEDED[command]
    missing = _missing(*modules)
    if missing and ("rich" in missing or not {"-h", "--help"} & set(words)):
        print(f"headrace: {command} needs {', '.join(missing)}: pip install 'headrace[{extra}]'", file=sys.stderr)
        return 1
    return _run(command, words[1:])


def _run(command: str, words: list[str]) -> int:
    if command == "demo":
        from headrace._cli.demo import demo

        return demo(words)
    if command == "cells":
        from headrace._cli.cells import cells

        return cells(words)
    from headrace._cli.verify import verify

    return verify(words)


def _missing(*modules: str) -> list[str]:
    from importlib.util import find_spec

    return [m for m in modules if find_spec(m) is None]
