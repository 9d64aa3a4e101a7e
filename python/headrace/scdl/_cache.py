"""The directory of downloaded chunks, shared by all processes that are given it.

    <cache_dir>/scdl-<url>/chunk_00003-<identity>-<bytes>/   the three arrays, and .use; never written again
    <cache_dir>/scdl-<url>/chunk_00003.lock                  who downloads this chunk
    <cache_dir>/scdl-<url>/chunk_00003.part-…/               a download under way, or what a killed process left

A chunk is downloaded beside its place and renamed into it, so what lies there is whole. Who uses one holds a shared
lock on its .use, and whoever wants to remove it needs that lock alone: chunks in use are never removed, whichever
process uses them. The locks are the kernel's (flock) and end with their process, also by a kill.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Entry:
    """A chunk that lies in the cache."""

    def __init__(self, path: Path) -> None:
        self.path = path
        name, self.identity, size = path.name.split("-")
        self.chunk, self.bytes = int(name.removeprefix("chunk_")), int(size)

    def used_at(self) -> float:
        try:
            return os.stat(self.path / ".use").st_mtime
        except OSError:
            return 0.0


class Cache:
    """`folder` is that of one dataset."""

    def __init__(self, cache_dir: str, url: str) -> None:
        self.folder = Path(cache_dir) / f"scdl-{hashlib.sha256(url.encode()).hexdigest()[:16]}"
        self.folder.mkdir(parents=True, exist_ok=True)

    def entries(self) -> list[Entry]:
        found = []
        for name in os.listdir(self.folder):
            if name.startswith("chunk_") and name.count("-") == 2 and not name.startswith("."):
                try:
                    found.append(Entry(self.folder / name))
                except ValueError:
                    pass  # somebody else's file
        return found

    def under_way(self) -> set[int]:
        """Chunks that any process downloads now."""
        return {
            int(name[6:].partition(".")[0])
            for name in os.listdir(self.folder)
            if name.startswith("chunk_") and ".part-" in name
        }

    def sweep(self) -> None:
        """What killed downloads have left is removed: nobody holds the lock of such a chunk."""
        for chunk in self.under_way():
            lock = os.open(self.folder / f"chunk_{chunk:05d}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._clear_parts(f"chunk_{chunk:05d}")
            except BlockingIOError:
                pass  # it is under way
            finally:
                os.close(lock)

    def path(self, chunk: int, identity: str, size: int) -> Path:
        return self.folder / f"chunk_{chunk:05d}-{identity}-{size}"

    def hold(self, path: Path) -> int | None:
        """A descriptor that keeps an entry from being removed until it is closed; None where there is no such entry."""
        try:
            use = os.open(path / ".use", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(use, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if os.stat(path / ".use").st_ino == os.fstat(use).st_ino:
                os.utime(use)
                return use
        except OSError:  # it is being removed
            pass
        os.close(use)
        return None

    def obtain(self, path: Path, download: Callable[[str], None]) -> tuple[int, bool]:
        """(descriptor that holds the entry, whether it was downloaded): of any number of processes that want it, one
        downloads, and the others wait."""
        held = self.hold(path)
        if held is not None:
            return held, False
        name = path.name.partition("-")[0]
        lock = os.open(self.folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            held = self.hold(path)
            if held is not None:
                return held, False
            self._clear(name, path)
            return self._download(name, path, download), True
        finally:
            os.close(lock)

    def _clear(self, name: str, path: Path) -> None:
        """What killed downloads of this chunk left, and what it was before it changed; under the chunk's lock."""
        self._clear_parts(name)
        for old in self.folder.glob(f"{name}-*"):
            if old != path:
                self.remove(old)

    def _clear_parts(self, name: str) -> None:
        for found in self.folder.glob(f"{name}.part-*"):
            shutil.rmtree(found, ignore_errors=True)

    def _download(self, name: str, path: Path, download: Callable[[str], None]) -> int:
        part = tempfile.mkdtemp(prefix=f"{name}.part-", dir=self.folder)
        use = -1
        try:
            download(part)
            use = os.open(f"{part}/.use", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            fcntl.flock(use, fcntl.LOCK_SH)  # before anybody can see it
            os.chmod(part, 0o755)
            os.rename(part, path)
        except BaseException:
            if use >= 0:
                os.close(use)
            shutil.rmtree(part, ignore_errors=True)
            raise
        return use

    def remove(self, path: Path) -> bool:
        """False where somebody uses it."""
        try:
            use = os.open(path / ".use", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            gone = tempfile.mkdtemp(prefix=".gone-", dir=self.folder)
            os.rename(path, f"{gone}/chunk")
            shutil.rmtree(gone, ignore_errors=True)
            return True
        except OSError:
            return False
        finally:
            os.close(use)
