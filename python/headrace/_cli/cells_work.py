"""Work that can be broken off: the folder `DST.part`, which becomes DST when all of it is there and compared.

What is finished in it has its final name, what is not ends in `.tmp`; `headrace.json` says what it is made from. A
run with the same words goes on where the last one stopped. Nothing of it is believed when source or words are others.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from headrace._cli.arguments import Refused

NOTE = "headrace.json"


class Work:
    def __init__(self, target: Path, identity: dict[str, Any]) -> None:
        self.target = Path(os.path.abspath(target))
        self.folder = self.target.with_name(self.target.name + ".part")
        if self.target.exists() or self.target.is_symlink():
            raise Refused(f"{target} is there already: another name is needed, or it is yours to remove first")
        self.goes_on = self.folder.exists()
        if not self.goes_on:
            self._begin(identity)
        self._lock = self._take()
        self._compare(identity)

    def _begin(self, identity: dict[str, Any]) -> None:
        fresh = self.folder.with_name(f"{self.folder.name}.{os.getpid()}.tmp")
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            fresh.mkdir()
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise Refused(f"{self.target} cannot be made in {self.target.parent}: {why}") from None
        (fresh / NOTE).write_text(json.dumps(identity))
        try:
            os.rename(fresh, self.folder)
        except OSError:  # another process began it at the same moment
            shutil.rmtree(fresh)

    def _take(self) -> IO[str]:
        try:
            note = (self.folder / NOTE).open("r+")
        except OSError:
            raise Refused(
                f"{self.folder} is there and is no unfinished work of this command (it has no {NOTE})"
            ) from None
        try:
            fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            note.close()
            raise Refused(f"{self.folder}: another process is at work in it") from None
        return note

    def _compare(self, identity: dict[str, Any]) -> None:
        try:
            begun = json.load(self._lock)
        except ValueError:
            begun = {}
        other = [k for k in identity if begun.get(k) != identity[k]]
        if other:
            what = "its source has changed since" if other == ["stamp"] else f"begun with another {', '.join(other)}"
            raise Refused(
                f"{self.folder} is unfinished work, {what}: remove it to begin anew, or choose another target"
            )

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    @contextmanager
    def file(self, name: str) -> Iterator[IO[bytes]]:
        """A file that has its name once it is whole and on the disk."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(path.name + ".tmp")
        with fresh.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.rename(fresh, path)

    @contextmanager
    def directory(self, name: str) -> Iterator[Path]:
        """A directory that has its name once it is whole. What an earlier run left of it is begun anew."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(path.name + ".tmp")
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir()
        yield fresh
        for file in fresh.rglob("*"):
            if file.is_file():
                with file.open("rb") as opened:
                    os.fsync(opened.fileno())
        os.rename(fresh, path)

    def finish(self) -> None:
        """All of it is there: it gets its name. Killed in between, the target is whole, with a file too many."""
        if self.target.exists():
            raise Refused(f"{self.target} has come to be meanwhile; the work is done and lies in {self.folder}")
        os.rename(self.folder, self.target)
        os.remove(self.target / NOTE)
        self._lock.close()

    def discard(self) -> None:
        """Nothing has been done yet: where this run began it, nothing is left of it."""
        if not self.goes_on:
            shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        self._lock.close()
