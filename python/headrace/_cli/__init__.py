"""The commands of the `headrace` program that are made in Python: what needs numpy, pictures and progress bars.

The program hands over by running ``python -m headrace._cli COMMAND …``. ``import headrace`` imports nothing of it.
"""

from __future__ import annotations

import sys

USAGE = "headrace: this is where the headrace program goes on in Python: headrace demo --help"


def main(argv: list[str] | None = None) -> int:
    """Run a command; the exit status: 0 success, 1 failure, 2 wrong usage."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] != ["demo"]:
        print(USAGE, file=sys.stderr)
        return 2
    missing = _missing("numpy", "zarr", "h5py", "rich", "iris_sample_data")
    if missing and not {"-h", "--help"} & set(words):
        print(f"headrace: demo needs {', '.join(missing)}: pip install 'headrace[demo]'", file=sys.stderr)
        return 1
    from headrace._cli.demo import demo

    return demo(words[1:])


def _missing(*modules: str) -> list[str]:
    from importlib.util import find_spec

    return [m for m in modules if find_spec(m) is None]
