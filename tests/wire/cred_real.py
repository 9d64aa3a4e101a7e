#!/usr/bin/env python3
"""Credentials against Ceph's own STS: roles whose keys live for three seconds, read on with.

    cred_real.py PROGRAM          PROGRAM is cred_show of the build

Prints TAP; skipped, with the reason, where the gateway cannot run.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import s3_server

PROFILES = """[profile short]
role_arn = {arn}
source_profile = base
duration_seconds = 3
[profile none]
role_arn = {arn}-none
source_profile = base
[profile wrong]
role_arn = {arn}
source_profile = base-wrong
[profile base]
aws_access_key_id = {key}
aws_secret_access_key = {secret}
[profile base-wrong]
aws_access_key_id = {key}
aws_secret_access_key = not-{secret}
"""


class Tests:
    def __init__(self, program, server, home):
        self.program, self.n, self.failed = program, 0, 0
        (home / "config").write_text(PROFILES.format(arn=s3_server.ROLE, key=server.key, secret=server.secret))
        clean = {k: v for k, v in os.environ.items() if not k.startswith("AWS_") and not k.lower().endswith("_proxy")}
        self.env = {
            **clean, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.port}", "AWS_CONFIG_FILE": str(home / "config"),
            "AWS_SHARED_CREDENTIALS_FILE": str(home / "none"), "AWS_EC2_METADATA_DISABLED": "true",
        }  # fmt: skip

    def run(self, profile, *more, **env):
        command = [self.program, profile, "us-east-1", *more]
        p = subprocess.run(command, env={**self.env, **env}, text=True, capture_output=True, timeout=120, check=False)
        return p.stdout.split("\n") if not p.returncode and not p.stderr else [f"exit {p.returncode}", p.stderr]

    def read(self, profile, seconds, **env):
        return self.run(profile, "s3://bkt", "hello", str(seconds), **env)

    def case(self, name, good, seen):
        self.n += 1
        self.failed += not good
        if not good:
            print("#", *seen)
        print(f"{'ok' if good else 'not ok'} {self.n} - {name}", flush=True)


def main():
    if reason := s3_server.why_not("rgw"):
        print(f"1..0 # SKIP {reason}")
        return 0
    server = s3_server.Rgw()
    with tempfile.TemporaryDirectory() as home:
        try:
            server.start()
            server.put("bkt", b"hello".hex(), b"hello".hex())
            server.token(3)  # makes the role
            t = Tests(sys.argv[1], server, pathlib.Path(home))
            first, second = t.run("short"), t.run("short")
            t.case("a role is assumed, each time anew", first[0] != second[0] and first[2] and second[2], first)
            seen = t.read("short", 10)
            t.case("reads go on while keys of three seconds come and go", int(seen[0]) > 20 and seen[1] == "0", seen)
            seen = t.read("base", 0)
            t.case("keys of a profile", seen[:2] == ["1", "0"], seen)
            seen = t.run("none")
            t.case(
                "a role that is not there is named",
                seen[0].startswith("error: ") and "short-none: NoSuch" in seen[0],
                seen,
            )
            seen = t.run("wrong")
            refused = seen[0].startswith("error: ") and s3_server.ROLE in seen[0] and server.secret not in seen[0]
            t.case("a wrong secret is refused, and not shown", refused, seen)
            seen = t.read("", 0)
            t.case(
                "without any the request was anonymous, and the error says where was looked",
                "looked at: environment" in seen[2],
                seen,
            )
        finally:
            server.stop()
    print(f"1..{t.n}")
    return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
