#!/usr/bin/env python3
"""`headrace inspect s3://…` as a user calls it: with a profile, the environment, a role and nothing, against real servers.

    inspect_s3.py rgw|moto PROGRAM          PROGRAM is headrace of the build

All eight exist, but not all of them alike: moto checks neither who a web identity is nor, unless its checks are off, takes
requests without a signature, so both run there with the checks off; that a private bucket is refused to the anonymous and
that a token is one are Ceph's part. Prints TAP; skipped, with the reason, where the server cannot run.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import s3_server
from issuer import AUDIENCE, Issuer

PROFILES = """[profile keys]
aws_access_key_id = {key}
aws_secret_access_key = {secret}
[profile role]
role_arn = {arn}
source_profile = keys
[profile wrong]
aws_access_key_id = {key}
aws_secret_access_key = not-{secret}
"""

BYTES = [{"name": "bytes", "configuration": {"endian": "little"}}]


def array3(shape, dims, **attributes):
    grid = {"name": "regular", "configuration": {"chunk_shape": shape}}
    return json.dumps(
        {
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "float32", "chunk_grid": grid,
            "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": BYTES, "dimension_names": dims,
            "attributes": attributes,
        }
    )  # fmt: skip


def array2(shape):
    fields = {"chunks": shape, "dtype": "<f4", "fill_value": 0, "order": "C", "filters": None, "compressor": None}
    return json.dumps({"zarr_format": 2, "shape": shape, **fields})


def archives():
    """Documents of three archives: v3 and v2 as they are, v2 consolidated."""
    dims = {
        name: json.dumps({"_ARRAY_DIMENSIONS": names}) for name, names in (("t2m", ["time", "y"]), ("time", ["time"]))
    }
    v2 = {".zgroup": '{"zarr_format": 2}', "t2m/.zarray": array2([4, 6]), "t2m/.zattrs": dims["t2m"]}
    v2 |= {"time/.zarray": array2([4]), "time/.zattrs": dims["time"]}
    metadata = {k: json.loads(v) for k, v in v2.items()}
    return {
        "z3": {
            "zarr.json": '{"zarr_format": 3, "node_type": "group"}',
            "t2m/zarr.json": array3([4, 6], ["time", "y"]),
            "time/zarr.json": array3([4], ["time"]),
        },
        "z2": v2,
        "c2": {".zmetadata": json.dumps({"zarr_consolidated_format": 1, "metadata": metadata})},
    }


class Tests:
    def __init__(self, program, server, home, arn):
        self.program, self.server, self.n, self.failed = program, server, 0, 0
        (home / "config").write_text(PROFILES.format(arn=arn, key=server.key, secret=server.secret))
        clean = {k: v for k, v in os.environ.items() if not k.startswith("AWS_") and not k.lower().endswith("_proxy")}
        self.env = {
            **clean, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.port}", "AWS_CONFIG_FILE": str(home / "config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(home / "none"), "AWS_EC2_METADATA_DISABLED": "true",
            "LC_ALL": "C.UTF-8", "AWS_REGION": "us-east-1",
        }  # fmt: skip

    def inspect(self, *words, **env):
        command = [self.program, "inspect", *words]
        return subprocess.run(
            command, env={**self.env, **env}, text=True, capture_output=True, timeout=120, check=False
        )

    def case(self, name, good, seen=""):
        self.n += 1
        self.failed += not good
        if not good:
            print(*(f"# {line}" for line in str(seen).splitlines()), sep="\n")
        print(f"{'ok' if good else 'not ok'} {self.n} - {name}", flush=True)

    def shows(self, name, *words, parts=("2 arrays", "t2m", "(time: 4, y: 6)"), **env):
        p = self.inspect(*words, **env)
        self.case(name, not p.returncode and not p.stderr and all(x in p.stdout for x in parts), p.stdout + p.stderr)

    def fails(self, name, *words, parts=(), **env):
        p = self.inspect(*words, **env)
        line = p.stderr.strip()
        good = (
            p.returncode == 1 and all(x in line for x in parts) and "\n" not in line and self.server.secret not in line
        )
        self.case(name, good, p.stdout + p.stderr)

    def keys(self):
        return {"AWS_ACCESS_KEY_ID": self.server.key, "AWS_SECRET_ACCESS_KEY": self.server.secret}


def fill(server, buckets):
    for bucket in buckets:
        for archive, documents in archives().items():
            for name, text in documents.items():
                server.put(bucket, f"{archive}/{name}".encode().hex(), text.encode().hex())


def signed(t):
    """What is signed, in every server alike."""
    for archive in ("z3", "z2", "c2"):
        t.shows(f"{archive} with a profile", f"s3://bkt/{archive}", AWS_PROFILE="keys")
    t.shows("a profile in the options", "--options", '{"profile": "keys"}', "s3://bkt/z3")
    t.shows("keys of the environment", "s3://bkt/z3", **t.keys())
    t.shows("a role by role_arn and source_profile", "s3://bkt/z3", AWS_PROFILE="role")
    t.shows("one array by its path", "s3://bkt/z3/t2m", parts=("1 array", "(time: 4, y: 6)"), **t.keys())
    t.fails("a wrong secret", "s3://bkt/z3", parts=("s3://bkt/z3", "status 403"), AWS_PROFILE="wrong")
    t.fails("a profile that is not there", "s3://bkt/z3", parts=("nobody",), AWS_PROFILE="nobody")
    t.fails("an archive that is not there", "s3://bkt/none", parts=("s3://bkt/none", "no Zarr archive"), **t.keys())


def public(t):
    t.shows("what is public, without credentials", "s3://open/z3")
    t.shows("what is public, by request", "--options", '{"anon": true}', "s3://open/c2")
    parts = ("s3://bkt/z3", "403", "anonymous")
    t.fails("what is not, without credentials", "s3://bkt/z3", parts=(*parts, "looked at: environment"))
    t.fails("what is not, by request", "--options", '{"anon": true}', "s3://bkt/z3", parts=parts)


def web_identity(t, arn, token):
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(token)
        file.flush()
        env = {"AWS_ROLE_ARN": arn, "AWS_WEB_IDENTITY_TOKEN_FILE": file.name}
        t.shows("a role by web identity", "s3://bkt/z3", **env)


def unlistable(t):
    """May read objects and not list them: 403 where there is none."""
    env = {"AWS_ACCESS_KEY_ID": s3_server.READER[0], "AWS_SECRET_ACCESS_KEY": s3_server.READER[1]}
    t.shows("consolidated metadata need no listing", "s3://reader/c2", **env)
    for archive in ("z3", "z2"):
        seen = ("(time: 4, y: 6)",)
        t.shows(f"{archive}: an array by name", f"s3://reader/{archive}", "t2m", parts=seen, **env)
        t.shows(f"{archive}: an array by path", f"s3://reader/{archive}/t2m", parts=seen, **env)
        known = ("1 array known", "time", "cannot list")
        t.shows(f"{archive}: usual names are tried, and that is said", f"s3://reader/{archive}", parts=known, **env)
    parts = ("s3://reader/none", "403 AccessDenied", "s3:ListBucket")
    t.fails("what may not be there is refused", "s3://reader/none", parts=parts, **env)
    parts = ("s3://reader/z2", "403 AccessDenied", "s3:ListBucket")
    t.fails("neither may an array that is not there", "s3://reader/z2", "u10", parts=parts, **env)
    option = ("--options", '{"missing_403": true}')
    t.fails("with missing_403 it is missing", *option, "s3://reader/z2", "u10", parts=('no array "u10"',), **env)


def on_rgw(program, home):
    server, issuer = s3_server.Rgw(), Issuer()
    try:
        server.start()
        fill(server, ("bkt", "open", "reader"))
        server.token(3)  # makes the role
        t = Tests(program, server, home, s3_server.ROLE)
        signed(t)
        public(t)
        web_identity(t, server.web_role(issuer.url, AUDIENCE, issuer.thumbprint), issuer.token())
        unlistable(t)
    finally:
        issuer.stop()
        server.stop()
    return t


def on_moto(program, home):
    server = s3_server.Moto()
    try:
        server.start()
        fill(server, ("bkt", "open"))
        t = Tests(program, server, home, server.role)
        signed(t)
        server.check_signatures(False)
        public(t)
        web_identity(t, server.role, "not looked at")
    finally:
        server.stop()
    return t


def main():
    kind = sys.argv[1]
    if reason := s3_server.why_not(kind):
        print(f"1..0 # SKIP {reason}")
        return 0
    with tempfile.TemporaryDirectory() as home:
        t = (on_rgw if kind == "rgw" else on_moto)(sys.argv[2], pathlib.Path(home))
    print(f"1..{t.n}")
    return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
