#!/usr/bin/env python3
"""headrace cat and inspect as a user meets them: what they print, what they say, how they exit. TAP on stdout."""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]


def run(*args, locale="C.UTF-8"):
    p = subprocess.run([PROGRAM, *args], capture_output=True, env={**os.environ, "LC_ALL": locale})
    return p.returncode, p.stdout, p.stderr.decode()


def make_archive(root):
    """A v2 hierarchy: ocean/salt (packed, one chunk absent), a v3 array beside it, and an array nobody can read."""
    root = pathlib.Path(root)

    def put(key, content):
        path = root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())

    v2 = {"zarr_format": 2, "order": "C", "filters": None, "compressor": None}
    put(".zgroup", {"zarr_format": 2})
    put("ocean/.zgroup", {"zarr_format": 2})
    put("ocean/salt/.zarray", {**v2, "shape": [4], "chunks": [2], "dtype": "<i2", "fill_value": -1})
    put("ocean/salt/.zattrs", {"_ARRAY_DIMENSIONS": ["depth"], "scale_factor": 0.5, "units": "g/kg"})
    put("ocean/salt/0", struct.pack("<hh", 2, 3))
    put(
        "odd/.zarray",
        {**v2, "shape": [4], "chunks": [2], "dtype": "<i2", "fill_value": 0, "compressor": {"id": "nobody"}},
    )
    put(
        "new/zarr.json",
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [2, 3],
            "data_type": "uint8",
            "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
            "chunk_key_encoding": {"name": "default"},
            "codecs": ["bytes"],
            "attributes": {},
        },
    )
    put("new/c/0/0", b"abcdef")
    return str(root)


def cat_prints_raw_values(archive):
    assert run("cat", archive, "new") == (0, b"abcdef", "")
    assert run("cat", archive, "ocean/salt") == (0, struct.pack("<4h", 2, 3, -1, -1), "")
    status, out, _ = run("cat", "--decode", archive, "ocean/salt")
    values = struct.unpack("<4d", out)
    assert status == 0 and values[:2] == (1.0, 1.5) and values[2] != values[2]
    assert len(run("cat", "--decode", "--dtype", "f4", archive, "ocean/salt")[1]) == 16
    assert run("cat", os.path.join(archive, "new"))[1] == b"abcdef"


def failures_exit_1_with_a_message(archive):
    for args, part in [
        (["cat", archive, "ocean/slat"], 'did you mean "ocean/salt"?'),
        (["cat", archive], "is a group, not an array"),
        (["cat", archive, "odd"], "nobody"),
        (["cat", "--dtype", "int8", "--decode", archive, "ocean/salt"], "float"),
        (["inspect", archive + "/nothing"], archive),
        (["inspect", archive, "nothing"], 'no array "nothing"; there are "new", '),
        (["inspect", archive, "ocean/slat"], 'did you mean "ocean/salt"?'),
        (["cat", archive, "humidity"], 'there are "'),
    ]:
        status, out, err = run(*args)
        assert status == 1 and not out, (args, status, out)
        assert err.startswith("headrace: ") and part in err, err


def wrong_usage_exits_2(archive):
    for args in [
        [],
        ["nonsense"],
        ["cat"],
        ["cat", archive, "new", "more"],
        ["cat", "--dtype", "q", archive],
        ["cat", "--dtype"],
        ["inspect", "--nonsense", archive],
        ["inspect"],
    ]:
        status, out, err = run(*args)
        assert status == 2 and not out and err, (args, status, out, err)
        assert not args or err.startswith("headrace: "), err


def the_right_word_is_suggested(archive):
    for args, part in [
        (["inspcet", archive], "did you mean 'inspect'?"),
        (["humidity"], "'headrace --help' lists them"),
        (["cat", "--dytpe", "f4", archive], "option '--dytpe' is not known; did you mean --dtype?"),
        (["cat", "--dytpe=f4", archive], "option '--dytpe' is not known; did you mean --dtype?"),
        (["inspect", "--jsno", archive], "did you mean --json?"),
        (["plan", archive, "--allong", "time"], "did you mean --along?"),
        (["plan", archive, "--unheard-of"], "option '--unheard-of' is not known\n"),
        (["plan", archive, "--s", "3"], "option '--s' may be --sel or --"),
        (["cat", "--dtype"], "--dtype lacks its value"),
        (["plan", "--along"], "--along lacks its value"),
        (["inspect", "--json=3", archive], "--json takes no value"),
        (["inspect", "-xj", archive], "option '-x' is not known"),
        (["cat", "--dtype", "f5", archive], "--dtype f5"),
    ]:
        status, out, err = run(*args)
        assert status == 2 and not out and part in err, (args, status, out, err)


def help_and_version_go_to_standard_output(archive):
    status, out, err = run("--help")
    assert status == 0 and not err and b"inspect" in out and b"cat" in out
    for command in "cat", "inspect":
        status, out, err = run(command, "--help")
        assert status == 0 and not err and out.startswith(b"usage: headrace " + command.encode())
    status, out, err = run("--version")
    assert status == 0 and out.startswith(b"headrace ") and not err


def inspect_draws_a_tree(archive):
    status, out, err = run("inspect", archive)
    lines = out.decode().splitlines()
    assert status == 0 and not err
    assert "zarr v2, 3 arrays" in lines[0], lines[0]
    assert lines[1].startswith("├─ new") and "(2, 3)" in lines[1] and "2×3 (6 B)" in lines[1]
    assert lines[2] == "├─ ocean/"
    assert lines[3].startswith("│  └─ salt") and "(depth: 4)" in lines[3]
    assert lines[4].startswith("└─ odd") and "cannot be read" in lines[4] and "nobody" in lines[4]
    assert run("inspect", archive, locale="C")[1].isascii()


def inspect_shows_one_array_in_full(archive):
    out = run("inspect", archive, "ocean/salt")[1].decode()
    assert 'units: "g/kg"' in out and "fill value  -1" in out and "(depth: 4)" in out


def inspect_gives_json(archive):
    report = json.loads(run("inspect", "--json", archive)[1])
    nodes = {n["path"]: n for n in report["nodes"]}
    assert list(nodes) == ["", "new", "ocean", "ocean/salt", "odd"]
    salt = nodes["ocean/salt"]
    assert salt["shape"] == [4] and salt["chunks"] == [2] and salt["dims"] == ["depth"] and salt["bytes"] == 8
    assert salt["dtype"] == "int16" and salt["n_chunks"] == 2 and salt["error"] is None and salt["shards"] is None
    assert "nobody" in nodes["odd"]["error"]
    assert json.loads(run("inspect", "--json", archive, "ocean/salt")[1]) == salt


def output_that_cannot_be_written_is_a_failure(archive):
    with open("/dev/full", "wb") as full:
        for args in [["cat", archive, "new"], ["inspect", archive], ["--help"]]:
            p = subprocess.run([PROGRAM, *args], stdout=full, stderr=subprocess.PIPE)
            assert p.returncode == 1 and p.stderr.startswith(b"headrace: "), (args, p)


def main():
    tests = [
        cat_prints_raw_values,
        failures_exit_1_with_a_message,
        wrong_usage_exits_2,
        the_right_word_is_suggested,
        help_and_version_go_to_standard_output,
        inspect_draws_a_tree,
        inspect_shows_one_array_in_full,
        inspect_gives_json,
        output_that_cannot_be_written_is_a_failure,
    ]
    failed = 0
    print("1..%d" % len(tests))
    for i, test in enumerate(tests, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(make_archive(os.path.join(folder, "a.zarr")))
                print("ok %d - %s" % (i, test.__name__.replace("_", " ")))
            except Exception as fault:
                failed += 1
                print("not ok %d - %s" % (i, test.__name__.replace("_", " ")))
                print("# line %d: %s" % (fault.__traceback__.tb_next.tb_lineno, fault))
    return 1 if failed else 0


sys.exit(main())
