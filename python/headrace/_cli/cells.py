"""``headrace cells``: tools for atlases of single cells."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from headrace._cli.arguments import guarded

if TYPE_CHECKING:
    from collections.abc import Callable

USAGE = """usage: headrace cells COMMAND [OPTION…] ARGUMENT…

Tools for atlases of single cells: SCDL, h5ad and AnnData-Zarr.

  chunk      makes chunked SCDL or sharded AnnData-Zarr of any of them, in bounded memory
  inspect    cells, genes, non-zeros, columns of obs, layers, and how the chunks suit training
  bench      how fast cells come, from a disk, in chunks, from a store

  headrace cells COMMAND --help   how a command is used
"""


def cells(words: list[str]) -> int:
    commands: dict[str, Callable[[list[str]], int]] = {"chunk": _chunk, "inspect": _inspect, "bench": _bench}
    if words[:1] and words[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0
    if not words or words[0] not in commands:
        said = f"there is no command '{words[0]}'; " if words else ""
        print(f"headrace: cells: {said}there are {', '.join(commands)}; 'headrace cells --help'", file=sys.stderr)
        return 2
    return guarded(lambda: commands[words[0]](words[1:]))


def _chunk(words: list[str]) -> int:
    from headrace._cli.cells_chunk import chunk

    return chunk(words)


def _inspect(words: list[str]) -> int:
    from headrace._cli.cells_inspect import inspect

    return inspect(words)


def _bench(words: list[str]) -> int:
    from headrace._cli.cells_bench import bench

    return bench(words)
