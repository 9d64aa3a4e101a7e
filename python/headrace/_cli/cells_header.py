"""`header.sch` of SCDL, written: integers are big-endian, texts have a 32-bit length in front.

Writers of the chunked layout keep what the header of the plain one says, lengths and all, and add how the rows are cut.
"""

from __future__ import annotations

import struct

from headrace.scdl._header import CHUNKED, ArrayInfo, ChunkedInfo, FeatureInfo, Header, parse_header

NUMBERS = {"uint8": 1, "uint16": 2, "uint32": 3, "uint64": 4, "float16": 5, "float32": 6, "float64": 7}
_TYPES = {**NUMBERS, "string": 8, "fixed_string": 9}
FILES = {"DATA": "data.npy", "ROWPTR": "row_ptr.npy", "COLPTR": "col_ptr.npy"}
WITHOUT_HEADER = {"DATA": "float32", "COLPTR": "uint32", "ROWPTR": "uint64"}
__all__ = ["CHUNKED", "FILES", "NUMBERS", "ArrayInfo", "ChunkedInfo", "FeatureInfo", "Header", "dtypes", "new_header",
           "parse_header", "to_bytes"]  # fmt: skip


def dtypes(header: Header | None) -> dict[str, str]:
    """By the names of arrays."""
    return {**WITHOUT_HEADER, **{a.name: a.dtype for a in (header.arrays if header else ())}}


def new_header() -> Header:
    header = Header()
    header.version = (0, 1, 0)
    return header


def to_bytes(header: Header) -> bytes:
    """With what stands behind the arrays, as the writers of chunks have it also where there is nothing to say."""
    parts = [b"SCDL", bytes(header.version), b"\1", struct.pack(">II", header.backend, len(header.arrays))]
    parts += [_entry(a) for a in header.arrays]
    parts.append(struct.pack(">I", len(header.feature_indices)))
    parts += [_entry(f) for f in header.feature_indices]
    cut = header.chunked_info
    parts.append(b"\1" + struct.pack(">IIQ", cut.chunk_size, cut.num_chunks, cut.total_rows) if cut else b"\0")
    return b"".join(parts)


def _text(s: str) -> bytes:
    raw = s.encode()
    return struct.pack(">I", len(raw)) + raw


def _entry(e: ArrayInfo) -> bytes:
    parts = [_text(e.name), struct.pack(">QI", e.length, _TYPES[e.dtype])]
    if isinstance(e, FeatureInfo):
        parts += [struct.pack(">I", len(e.index_files)), *map(_text, e.index_files)]
    n = None if e.shape is None else len(e.shape)
    parts.append(b"\0" if n is None else b"\1" + struct.pack(f">I{n}I", n, *e.shape or ()))
    return b"".join(parts)
