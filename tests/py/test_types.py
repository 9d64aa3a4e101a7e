"""The typing of the extension names what is there, no more and no less."""

from __future__ import annotations

import ast
from pathlib import Path

import headrace
from headrace import _headrace

PACKAGE = Path(headrace.__file__).parent
SLOTS = {"__buffer__", "__array__", "__dlpack__", "__dlpack_device__"}  # the first appears with Python 3.12


def stub() -> dict[str, set[str]]:
    """{class or function: members}"""
    tree = ast.parse((PACKAGE / "_headrace.pyi").read_text())
    out = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            out[node.name] = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            out[node.name] = set()
    return out


def test_every_name_of_the_extension_is_typed() -> None:
    typed = stub()
    assert set(typed) == {n for n in dir(_headrace) if not n.startswith("__")}
    for name, members in typed.items():
        thing = getattr(_headrace, name)
        there = {m for m in vars(thing) if not m.startswith("__")} if isinstance(thing, type) else set()
        assert {m for m in members if not m.startswith("__")} == there, name
        for special in (m for m in members if m.startswith("__") and m not in SLOTS):
            assert special in vars(thing), f"{name}.{special}"


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()
