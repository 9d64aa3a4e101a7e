"""Command lines of the tools that are made in Python."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING

from rich.console import Console

import headrace as hr

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


_LEAST_MEMORY = 64_000


class Refused(Exception):
    """What is not to be done; the text is for the user."""


def guarded(command: Callable[[], int]) -> int:
    """Runs it; what goes wrong is one line on standard error, and status 1."""
    try:
        return command()
    except KeyboardInterrupt:
        print("headrace: interrupted", file=sys.stderr)
        return 1
    except ImportError as error:  # what only some sources need
        module = (error.name or str(error)).partition(".")[0]
        print(f"headrace: this needs {module}: pip install 'headrace[cells]'", file=sys.stderr)
        return 1
    except (Refused, ValueError, KeyError, OSError, RuntimeError, hr.Error) as error:
        text = error.args[0] if isinstance(error, (hr.Error, Refused)) and error.args else error
        if isinstance(error, KeyError) and not isinstance(error, hr.Error):
            text = f"{error!r}"
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"headrace: {text}", markup=False)
        return 1


class _Once(argparse.Action):
    """An option with a value is given once, as on the other commands: which of two was meant nobody knows."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        given = vars(namespace).setdefault("_given", set())
        if option_string and self.dest in given:
            parser.error(f"{option_string} is given twice: one value is expected")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


class _Parser(argparse.ArgumentParser):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.register("action", None, _Once)
        self.register("action", "store", _Once)

    def error(self, message: str) -> NoReturn:
        """One line, as all errors are."""
        name = self.prog.partition(" ")[2]
        print(f"headrace: {name}: {message}; '{self.prog} --help'", file=sys.stderr)
        sys.exit(2)


def parser(name: str, words: str) -> argparse.ArgumentParser:
    return _Parser(prog=f"headrace {name}", description=words, formatter_class=argparse.RawDescriptionHelpFormatter)


def options_json(text: str) -> dict[str, Any]:
    """Storage options."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f'{text!r} is no JSON object, such as \'{{"token": "anon"}}\'')
    return found


def there(place: str) -> str:
    """A path or URL; a path leads somewhere."""
    if "://" not in place and not os.path.exists(place):
        raise Refused(f"{place}: there is no such file or directory")
    return place


def to_bytes(text: str) -> int:
    """ "256MiB", "1GB", "4096"."""
    units = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
    word = text.strip().lower().removesuffix("b")
    digits = word.rstrip("kmgti ")
    try:
        n = int(float(digits) * units[word[len(digits) :].strip()])
    except (KeyError, ValueError, OverflowError):
        n = 0
    if n <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size, such as 256MiB")
    return n


def memory(text: str) -> int:
    """A size that work can be done in."""
    n = to_bytes(text)
    if n < _LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"{text!r}: at least 64kB is expected")
    return n


def positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)
