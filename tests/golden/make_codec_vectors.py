#!/usr/bin/env python3
"""Writes tests/golden/codec/vectors.txt: single chunks as other software encodes them, and what they decode to.

Run by hand with numpy, numcodecs and zarr (3.x) installed:  python tests/golden/make_codec_vectors.py
One vector a line, fields separated by tabs:

    name   metadata (JSON)   stored bytes (hex)   decoded bytes (hex)

Metadata is {"zarr": 2, "shape", "dtype", "order", "filters", "compressor"} or {"zarr": 3, "shape", "data_type",
"fill_value", "codecs"}. Decoded: native little-endian items in C order; strings joined by NUL.
tests/unit/codec/vectors.c reads the file. Encoders are seeded, so the file changes only with the libraries' output.
"""

import asyncio
import json
import pathlib
import time
import warnings

import numcodecs
import numpy as np
import zarr
from zarr.storage import MemoryStore

warnings.filterwarnings("ignore")
time.time = lambda: 0.0  # gzip writes it into its header
OUT = pathlib.Path(__file__).parent / "codec" / "vectors.txt"
rng = np.random.default_rng(7)
lines = []


def emit(name, meta, stored, decoded):
    meta = json.dumps(meta, separators=(",", ":"))
    lines.append("\t".join([name, meta, bytes(stored).hex(), bytes(decoded).hex()]))


def native(a):
    a = np.asarray(a)
    return a.astype(a.dtype.newbyteorder("<")).tobytes("C")


def v2(name, a, filters=(), compressor=None, order="C", dtype=None, shape=None, decoded=None):
    """Encode as zarr v2 does: bytes in `order`, filters in turn, the compressor last."""
    meta = {
        "zarr": 2,
        "shape": list(shape or a.shape),
        "dtype": dtype or a.dtype.str,
        "order": order,
        "filters": [dict(f, id=f["id"]) for f in filters] or None,
        "compressor": compressor,
    }
    buf = a if a.dtype == object else np.frombuffer(a.tobytes(order), a.dtype)
    for f in [*filters, *([compressor] if compressor else [])]:
        buf = numcodecs.get_codec(dict(f)).encode(buf)
    stored = buf.tobytes() if isinstance(buf, np.ndarray) else bytes(buf)
    emit(name, meta, stored, native(a) if decoded is None else decoded)


def v3(name, data_type, shape, codecs, stored, decoded, fill_value=0):
    meta = {"zarr": 3, "shape": list(shape), "data_type": data_type, "fill_value": fill_value, "codecs": codecs}
    emit(name, meta, stored, decoded)


def by_zarr(name, a, codecs, data_type=None, fill_value=0, decoded=None):
    """One chunk through zarr-python's own pipeline."""
    doc = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(a.shape),
        "data_type": data_type or str(a.dtype),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(a.shape)}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": fill_value,
        "codecs": codecs,
        "attributes": {},
    }

    async def run():
        store = MemoryStore()
        proto = zarr.core.buffer.default_buffer_prototype()
        await store.set("zarr.json", proto.buffer.from_bytes(json.dumps(doc).encode()))
        z = await zarr.api.asynchronous.open_array(store=store, zarr_format=3)
        await z.setitem(..., a)
        key = "c/" + "/".join(["0"] * a.ndim) if a.ndim else "c"
        return (await store.get(key, proto)).to_bytes()

    v3(
        name,
        doc["data_type"],
        a.shape,
        codecs,
        asyncio.run(run()),
        native(a) if decoded is None else decoded,
        fill_value,
    )


def cdc(name, **configuration):
    return {"name": name, "configuration": configuration} if configuration else {"name": name}


LE, BE = cdc("bytes", endian="little"), cdc("bytes", endian="big")

f4 = np.linspace(-3, 40, 60, dtype="<f4").reshape(3, 4, 5)
f8 = rng.normal(size=48).astype("<f8").reshape(6, 8)
i4 = rng.integers(-(2**31), 2**31, 40, dtype="<i4").reshape(5, 8)
i2 = rng.integers(-500, 500, 40).astype("<i2")
u1 = rng.integers(0, 255, 37).astype("u1")

# ---- v2: compressors
for cname in ["lz4", "lz4hc", "blosclz", "zlib", "zstd"]:
    for shuffle in (0, 1, 2):
        big = np.arange(3000, dtype="<u4") * 7
        v2(
            f"blosc {cname} {shuffle}",
            big[:300],
            compressor={"id": "blosc", "cname": cname, "clevel": 5, "shuffle": shuffle, "blocksize": 512},
        )
c = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 508}  # streams of 127 items are not split
v2("blosc lz4 short blocks", np.arange(300, dtype="<u4") * 7, compressor=c)
v2("blosc f8 shuffle", f8, compressor={"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1})
v2(
    "blosc c16 shuffle",
    (f8 + 1j * f8[::-1]).astype("<c16"),
    compressor={"id": "blosc", "cname": "lz4", "clevel": 9, "shuffle": 1},
)
v2(
    "blosc stored",
    rng.integers(0, 2**16, 40).astype("<u2"),
    compressor={"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
)
v2("zstd", f4, compressor={"id": "zstd", "level": 3})
v2("zstd checksum", f4, compressor={"id": "zstd", "level": 3, "checksum": True})
v2("zlib", f4, compressor={"id": "zlib", "level": 4})
v2("gzip", f4, compressor={"id": "gzip", "level": 4})
v2("lz4", f4, compressor={"id": "lz4", "acceleration": 1})
v2("bz2", f4, compressor={"id": "bz2", "level": 1})
v2("lzma xz", f4, compressor={"id": "lzma", "format": 1, "check": -1, "preset": 1, "filters": None})
v2("lzma alone", f4, compressor={"id": "lzma", "format": 2, "check": -1, "preset": 1, "filters": None})
raw = {
    "id": "lzma",
    "format": 3,
    "check": -1,
    "preset": None,
    "filters": [{"id": 3, "dist": 4}, {"id": 33, "preset": 1}],
}
v2("lzma raw delta lzma2", f4, compressor=raw)
raw1 = {
    "id": "lzma",
    "format": 3,
    "check": -1,
    "preset": None,
    "filters": [{"id": 0x4000000000000001, "dict_size": 65536, "lc": 2, "pb": 1}],
}
v2("lzma raw lzma1", f4, compressor=raw1)
v2("base64", u1, compressor={"id": "base64"})

# ---- v2: order and byte order
v2("order F", f4, order="F")
v2("order F big-endian", f4.astype(">f4"), order="F", compressor={"id": "zstd", "level": 1})
v2("big-endian complex", (f8 + 2j).astype(">c16"))
v2("big-endian datetime", np.arange(9).astype(">M8[10us]"))
v2("big-endian utf32", np.array(["é", "水x", ""], dtype=">U2"))
pt = np.dtype([("a", ">u2"), ("b", "<f8"), ("s", "S3"), ("n", [("x", ">i4"), ("y", "u1")])])
st = np.zeros(5, pt)
st["a"], st["b"], st["s"] = np.arange(5) * 300, np.arange(5) / 7, [b"a", b"bc", b"def", b"", b"z"]
st["n"]["x"], st["n"]["y"] = np.arange(5) * -70000, np.arange(5)
le = np.dtype([("a", "<u2"), ("b", "<f8"), ("s", "S3"), ("n", [("x", "<i4"), ("y", "u1")])])
desc = [["a", ">u2"], ["b", "<f8"], ["s", "|S3"], ["n", [["x", ">i4"], ["y", "|u1"]]]]
v2("struct mixed order", st, dtype=desc, decoded=st.astype(le).tobytes())
emit(
    "bool bytes",
    {"zarr": 2, "shape": [6], "dtype": "|b1", "order": "C", "filters": [], "compressor": None},
    bytes([0, 1, 2, 255, 0, 128]),
    bytes([0, 1, 1, 1, 0, 1]),
)

# ---- v2: checksums
for name in ["crc32", "adler32", "crc32c"]:
    for location in ("start", "end"):
        v2(f"{name} {location}", i2, filters=[{"id": name, "location": location}])
    v2(f"{name} default", i2, filters=[{"id": name}])
v2("fletcher32", i2, filters=[{"id": "fletcher32"}])
v2("fletcher32 long", rng.integers(0, 2**16, 700).astype("<u2"), filters=[{"id": "fletcher32"}])
v2("jenkins_lookup3", i2, filters=[{"id": "jenkins_lookup3"}])
for n in (1, 11, 12, 13, 24):
    v2(f"jenkins_lookup3 {n} bytes", u1[:n], filters=[{"id": "jenkins_lookup3", "initval": 5}])

# ---- v2: filters
v2("shuffle 4", f4, filters=[{"id": "shuffle", "elementsize": 4}])
v2("shuffle 8 then zlib, both filters", f8, filters=[{"id": "shuffle", "elementsize": 8}, {"id": "zlib", "level": 2}])
left = bytes(range(4)) * 3 + b"\x09"  # 13 bytes: 3 words of 4 and one byte over, as HDF5 stores it
planes = b"".join(bytes([left[k + 4 * i] for i in range(3)]) for k in range(4)) + left[12:]
emit(
    "shuffle with a remainder",
    {
        "zarr": 2,
        "shape": [13],
        "dtype": "|u1",
        "order": "C",
        "filters": [{"id": "shuffle", "elementsize": 4}],
        "compressor": None,
    },
    planes,
    left,
)
v2("delta i4 as i2", np.cumsum(i2).astype("<i4"), filters=[{"id": "delta", "dtype": "<i4", "astype": "<i2"}])
v2(
    "delta big-endian u8",
    np.cumsum(np.abs(i2)).astype(">u8"),
    filters=[{"id": "delta", "dtype": ">u8", "astype": ">u8"}],
)
d = rng.normal(size=33).astype("<f4")
enc = numcodecs.get_codec({"id": "delta", "dtype": "<f4"}).encode(d)
v2("delta f4", d, filters=[{"id": "delta", "dtype": "<f4"}], decoded=np.cumsum(enc, dtype="<f4").tobytes())
for dt, at in [("<f8", "<i2"), (">f4", "<u1"), ("<f4", "<i4"), ("<i4", "<i2")]:
    c = {"id": "fixedscaleoffset", "offset": 1000, "scale": 10, "dtype": dt, "astype": at}
    a = np.linspace(1000, 1020, 21).astype(dt)
    stored = np.asarray(numcodecs.get_codec(dict(c)).encode(a))
    exact = (stored.astype("f8") / 10 + 1000).astype(dt)
    v2(f"fixedscaleoffset {dt} {at}", a, filters=[c], decoded=native(exact))
c = {"id": "fixedscaleoffset", "offset": 0, "scale": 10, "dtype": "<f8", "astype": "<i2"}
a = np.arange(-40, 40) / 10
v2("fixedscaleoffset divides", a, filters=[c], decoded=native(np.rint(a * 10) / 10))
for a, b in [("<i2", "<i8"), (">i4", "<f4"), ("<f4", "<f8"), ("<i8", "<f2"), ("|u1", "|i1")]:
    src = np.array([-3, 0, 1, 100, 127]).astype(b)
    c = {"id": "astype", "encode_dtype": a, "decode_dtype": b}
    v2(f"astype {a} {b}", src, filters=[c])
q = {"id": "quantize", "digits": 2, "dtype": "<f8", "astype": "<f4"}
v2("quantize", f8, filters=[q], decoded=native(np.asarray(numcodecs.get_codec(dict(q)).encode(f8)).astype("<f8")))
r = {"id": "bitround", "keepbits": 5}
v2("bitround", f4, filters=[r], decoded=np.asarray(numcodecs.get_codec(dict(r)).encode(f4.copy())).tobytes())
for n in (1, 7, 8, 9, 16, 31):
    v2(f"packbits {n}", rng.integers(0, 2, n).astype("bool"), filters=[{"id": "packbits"}])
v2(
    "packbits then zstd",
    rng.integers(0, 2, 100).astype("bool").reshape(10, 10),
    filters=[{"id": "packbits"}],
    compressor={"id": "zstd", "level": 1},
    order="F",
)

# ---- v2: strings
s = np.array(["a", "", "水", "naïve"], dtype=object)
v2("vlen-utf8", s, filters=[{"id": "vlen-utf8"}], dtype="|O", decoded=b"\0".join(x.encode() for x in s))
v2(
    "vlen-utf8 zstd",
    s,
    filters=[{"id": "vlen-utf8"}],
    compressor={"id": "zstd", "level": 1},
    dtype="|O",
    decoded=b"\0".join(x.encode() for x in s),
)
b = np.array([b"ab", b"", b"\xff\xfe"], dtype=object)
v2("vlen-bytes as compressor", b, compressor={"id": "vlen-bytes"}, dtype="|O", decoded=b"\0".join(b))
m = np.array([[f"{i}{j}" * (i + j) for j in range(3)] for i in range(2)], dtype=object)
flat = np.array([m[i, j] for j in range(3) for i in range(2)], dtype=object)
stored = bytes(numcodecs.get_codec({"id": "vlen-utf8"}).encode(flat))
emit(
    "vlen-utf8 order F",
    {"zarr": 2, "shape": [2, 3], "dtype": "|O", "order": "F", "filters": [{"id": "vlen-utf8"}], "compressor": None},
    stored,
    b"\0".join(x.encode() for x in m.ravel()),
)

# ---- v3: pipelines by zarr-python
by_zarr("v3 bytes big", i4, [BE])
by_zarr("v3 transpose 120", f4, [cdc("transpose", order=[1, 2, 0]), LE])
by_zarr(
    "v3 transpose twice",
    f4,
    [cdc("transpose", order=[2, 0, 1]), cdc("transpose", order=[1, 0, 2]), BE, cdc("gzip", level=3)],
)
by_zarr("v3 zstd crc32c", f8, [LE, cdc("zstd", level=1, checksum=True), cdc("crc32c")], data_type="float64")
for n in ("lz4", "zlib", "bz2"):
    by_zarr(
        f"v3 numcodecs.{n}", i4, [LE, cdc(f"numcodecs.{n}", **({"acceleration": 1} if n == "lz4" else {"level": 3}))]
    )
by_zarr("v3 numcodecs.shuffle", i4, [LE, cdc("numcodecs.shuffle", elementsize=4), cdc("numcodecs.zlib", level=1)])
by_zarr("v3 numcodecs.delta", np.cumsum(i2).astype("i4"), [cdc("numcodecs.delta", dtype="<i4", astype="<i2"), BE])
index = [LE, cdc("crc32c")]


def shard(chunk_shape, codecs, index_codecs=index, location="end"):
    return cdc(
        "sharding_indexed", chunk_shape=chunk_shape, codecs=codecs, index_codecs=index_codecs, index_location=location
    )


z = np.zeros((4, 6), "i4")
z[:2, :3] = 5
z[3, 5] = -1
by_zarr("v3 shard", z, [shard([2, 3], [LE])])
by_zarr(
    "v3 shard at start, big-endian index, fill -1",
    z,
    [shard([2, 3], [BE, cdc("zstd", level=1, checksum=False)], [BE], "start")],
    fill_value=-1,
)
by_zarr("v3 shard in gzip", z, [shard([2, 2], [LE]), cdc("gzip", level=1)])
by_zarr(
    "v3 transpose, shard in crc32c",
    z,
    [cdc("transpose", order=[1, 0]), shard([2, 2], [cdc("transpose", order=[1, 0]), LE]), cdc("crc32c")],
)
by_zarr("v3 shard in shard in zstd", z, [shard([2, 6], [shard([1, 3], [LE])]), cdc("zstd", level=1, checksum=False)])

# ---- v3: what zarr-python 3.1 does not have, encoded here after the specifications
x = np.array([0.5, 1.25, -3.0, 10.0], "<f4")
e = ((x - np.float32(4)) * np.float32(8)).astype("<f4")
v3("v3 scale_offset", "float32", [4], [cdc("scale_offset", offset=4, scale=8), LE], e.tobytes(), x.tobytes())
k = np.array([-7, -1, 0, 5, 127], "<i1")
v3(
    "v3 scale_offset of integers",
    "int8",
    [5],
    [cdc("scale_offset", offset=1, scale=2), cdc("bytes")],
    k.tobytes(),
    (k // np.int8(2) + np.int8(1)).tobytes(),
)
third = cdc("scale_offset", offset=1, scale=3)
thirds = k // np.int8(3) + np.int8(1)
v3("v3 scale_offset of integers by 3", "int8", [5], [third, cdc("bytes")], k.tobytes(), thirds.tobytes())
c = np.array([1, -32768, 7], "<i2")
cast = cdc("cast_value", data_type="int16", scalar_map={"encode": [["NaN", -32768]], "decode": [[-32768, "NaN"]]})
v3(
    "v3 cast_value with a map",
    "float64",
    [3],
    [cast, BE],
    c.astype(">i2").tobytes(),
    np.array([1, np.nan, 7], "<f8").tobytes(),
)
w = np.array([300, -1, 255, 0], "<i4")
v3(
    "v3 cast_value wrap",
    "uint8",
    [4],
    [cdc("cast_value", data_type="int32", out_of_range="wrap"), LE],
    w.tobytes(),
    w.astype("u1").tobytes(),
)
v3(
    "v3 cast_value clamp",
    "uint8",
    [4],
    [cdc("cast_value", data_type="int32", out_of_range="clamp"), LE],
    w.tobytes(),
    np.clip(w, 0, 255).astype("u1").tobytes(),
)
h = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 2.4], "<f8")
for mode, f in [
    ("nearest-even", np.rint),
    ("towards-zero", np.trunc),
    ("towards-positive", np.ceil),
    ("towards-negative", np.floor),
    ("nearest-away", lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v)),
]:
    v3(
        f"v3 cast_value {mode}",
        "int16",
        [6],
        [cdc("cast_value", data_type="float64", rounding=mode), LE],
        h.tobytes(),
        f(h).astype("<i2").tobytes(),
    )
# an inner chunk that equals the encoded fill is left out: 10 is stored as (10 - 4) * 8
fill = np.full(4, 10.0, "<f4")
left_out = np.full((2, 2), 2**64 - 1, "<u8")
left_out[0] = (0, 8)
body = ((np.array([1.0, 2.0], "<f4") - np.float32(4)) * np.float32(8)).tobytes() + left_out.tobytes()
v3(
    "v3 shard behind scale_offset, a chunk left out",
    "float32",
    [4],
    [cdc("scale_offset", offset=4, scale=8), shard([2], [LE], [LE])],
    body,
    np.array([1, 2, 10, 10], "<f4").tobytes(),
    10,
)


def pack(values, bits, padding):
    word = "".join("".join(str(v >> i & 1) for i in range(bits)) for v in values)
    pad = -len(word) % 8
    word += "0" * pad
    out = bytes(sum(int(word[8 * i + j]) << j for j in range(8)) for i in range(len(word) // 8))
    return {"none": out, "first_byte": bytes([pad]) + out, "last_byte": out + bytes([pad])}[padding]


bits = [1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1]
for padding in ("none", "first_byte", "last_byte"):
    v3(
        f"v3 packbits bool {padding}",
        "bool",
        [11],
        [cdc("packbits", padding_encoding=padding)],
        pack(bits, 1, padding),
        bytes(bits),
        False,
    )
n4 = [-8, 7, 0, -1, 3]
v3(
    "v3 packbits int4",
    "int4",
    [5],
    [cdc("packbits")],
    pack([v & 15 for v in n4], 4, "none"),
    np.array(n4, "i1").tobytes(),
)
u12 = [4095, 0, 1234, 7]
v3(
    "v3 packbits bits 2 to 13 of uint16",
    "uint16",
    [4],
    [cdc("packbits", first_bit=2, last_bit=13)],
    pack(u12, 12, "none"),
    (np.array(u12, "<u2") << 2).tobytes(),
)
s12 = [-3, 2, 1000, -2048]
v3(
    "v3 packbits 12 bits of int16",
    "int16",
    [4],
    [cdc("packbits", first_bit=0, last_bit=11)],
    pack([v & 4095 for v in s12], 12, "none"),
    np.array(s12, "<i2").tobytes(),
)

# ---- v3: strings
words = np.array([["x", "yy"], ["", "水"]], dtype=object)


def vlen(items):
    return bytes(numcodecs.get_codec({"id": "vlen-utf8"}).encode(np.array(items, dtype=object)))


v3(
    "v3 strings transposed",
    "string",
    [2, 2],
    [cdc("transpose", order=[1, 0]), cdc("vlen-utf8")],
    vlen(["x", "", "yy", "水"]),
    b"\0".join(v.encode() for v in words.ravel()),
    "",
)
one = vlen(["x", "yy"])
idx = np.array([[0, len(one)], [2**64 - 1, 2**64 - 1]], "<u8").tobytes()
body = numcodecs.get_codec({"id": "gzip", "level": 1}).encode(one + idx)
v3(
    "v3 strings in a shard in gzip",
    "string",
    [2, 2],
    [shard([1, 2], [cdc("vlen-utf8")], [LE]), cdc("gzip", level=1)],
    body,
    b"\0".join([b"x", b"yy", b"?", b"?"]),
    "?",
)

OUT.parent.mkdir(exist_ok=True)
OUT.write_text("\n".join(lines) + "\n")
print(len(lines), "vectors,", OUT.stat().st_size, "bytes")
