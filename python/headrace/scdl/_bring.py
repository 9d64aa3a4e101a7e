"""How one chunk comes into the cache: who it is, then its bytes."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
import zlib

from headrace._errors import DataError, FormatError
from headrace.scdl._layout import COLUMNS, DATA, PACKED, ROWS, Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MEMBERS = {"data": DATA, "row_ptr": ROWS, "col_ptr": COLUMNS}


class Parcel:
    """A chunk as it lies in the store: `identity` changes when any of its files does, `bytes` is what it takes here."""

    def __init__(self, identity: str, size: int, sizes: dict[str, int], packed: bytes | None = None) -> None:
        self.identity, self.bytes, self.sizes, self.packed = identity, size, sizes, packed

    @property
    def whole(self) -> bool:
        """What it takes to download it is known."""
        return PACKED not in self.sizes or self.packed is not None

    def without_bytes(self) -> Parcel:
        return Parcel(self.identity, self.bytes, self.sizes)


def look(layout: Layout, chunk: int, session: str, urgent: bool) -> Parcel:
    """Ask for the ends of the three files: their sizes and versions come with them, and the number of values. Nothing
    is downloaded that does not fit them. `urgent`: on readers that nothing else waits for."""
    files = layout.files
    names = (ROWS, COLUMNS, DATA)
    jobs = [files.submit(urgent, files.end, layout.key(chunk, name), layout.item(name)) for name in names]
    found: dict[str, Any] = {}
    failed: BaseException | None = None
    for name, job in zip(names, jobs):
        try:
            found[name] = job.result()
        except BaseException as e:
            failed = failed or e
    if failed is not None:
        raise failed
    place = files.place(layout.key(chunk, "")).rstrip("/")
    if found[ROWS] is None:
        return _look_packed(layout, chunk, session, place)
    for name, end in found.items():
        if end is None:
            raise FormatError(f"{place}/{name}: missing")
    sizes = {name: end[1] for name, end in found.items()}
    last = found[ROWS][0]
    if len(last) != layout.item(ROWS) or sizes[ROWS] % layout.item(ROWS):
        layout.check(chunk, sizes, 0, place)
    layout.check(chunk, sizes, int.from_bytes(last, "little"), place)
    return Parcel(_identity(session, [(n, e[1], e[2]) for n, e in found.items()]), sum(sizes.values()), sizes)


def _identity(session: str, files: list[tuple[str, int, int]]) -> str:
    """Where the store tells no versions, what one session has downloaded serves that session alone."""
    text = repr((files, "" if all(version for _, _, version in files) else session))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _look_packed(layout: Layout, chunk: int, session: str, place: str) -> Parcel:
    key = layout.key(chunk, PACKED)
    packed = layout.files.read(key)
    if packed is None:
        raise FormatError(f"{place}: neither {ROWS} nor {PACKED} is there: the chunk is missing")
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as z:
            size = sum(i.file_size for i in z.infolist())
    except (zipfile.BadZipFile, OSError) as e:
        raise DataError(f"{place}/{PACKED}: cut or broken: {e}") from None
    identity = hashlib.sha256(packed).hexdigest()[:16]
    return Parcel(identity, size, {PACKED: len(packed)}, packed)


def download(layout: Layout, chunk: int, parcel: Parcel, folder: str, urgent: bool) -> None:
    """The three raw arrays into a new folder."""
    if parcel.packed is not None:
        _unpack(layout, chunk, parcel.packed, folder)
        return
    for name in (ROWS, COLUMNS, DATA):
        layout.files.fetch(layout.key(chunk, name), parcel.sizes[name], os.path.join(folder, name), urgent)


def _unpack(layout: Layout, chunk: int, packed: bytes, folder: str) -> None:
    """Members are NPY files; what is mapped here are raw arrays, so their headers are read and left behind."""
    import numpy as np

    place = layout.files.place(layout.key(chunk, PACKED))
    try:
        with np.load(io.BytesIO(packed), allow_pickle=False) as npz:
            for member, name in _MEMBERS.items():
                array = npz[member]
                np.ascontiguousarray(array, layout.dtypes[name]).tofile(os.path.join(folder, name))
    except (ValueError, KeyError, OSError, EOFError, zlib.error, zipfile.BadZipFile) as e:
        if isinstance(e, OSError) and e.errno is not None:
            raise
        raise DataError(f"{place}: cut or broken: {e}") from None
