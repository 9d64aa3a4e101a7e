#!/usr/bin/env python3
"""gs:// against gcp-storage-emulator, filled through its own JSON API: a second implementation of the service.

    gcs_emulator.py PROGRAM          PROGRAM is store_ask of the build

It knows no accounts, no ranges from the end and no preconditions; what it knows must agree. Prints TAP; skipped where the
emulator is not installed.
"""

import json
import os
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

try:
    from gcp_storage_emulator.server import create_server
except ImportError:
    print("1..0 # SKIP gcp-storage-emulator is not installed")
    sys.exit(0)

import logging

import rgw

logging.disable(logging.CRITICAL)
nth = failed = 0


def report(name, faults):
    global nth, failed
    nth, failed = nth + 1, failed + bool(faults)
    for fault in faults:
        print(f"# {fault}")
    print(f"{'not ok' if faults else 'ok'} {nth} - {name}", flush=True)


def awkward_keys():
    """Those of keys.h."""
    text = (Path(__file__).parent / "keys.h").read_text()
    pairs = re.findall(r'\{"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"\}', text)
    return [urllib.parse.unquote(encoded) for _, encoded in pairs]


def post(path, body, kind="application/json"):
    request = urllib.request.Request(URL + path, body, {"Content-Type": kind})
    return urllib.request.urlopen(request).read()


def put(name, body):
    post(
        f"/upload/storage/v1/b/bkt/o?uploadType=media&name={urllib.parse.quote(name, safe='')}",
        body,
        "application/octet-stream",
    )


class Store:
    def __init__(self, url):
        env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        self.child = subprocess.Popen(
            [sys.argv[1], url],
            env=env | {"STORAGE_EMULATOR_HOST": HOST},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *words):
        self.child.stdin.write(" ".join(map(str, words)) + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().rstrip("\n")

    def read(self, key, offset=0, length=0):
        return self.ask("read", key.encode().hex(), offset, length)

    def list(self, prefix):
        kind, _, names = self.ask("list", prefix.encode().hex()).partition(" ")
        return sorted(bytes.fromhex(n).decode() for n in names.split()) if kind == "names" else names

    def close(self):
        self.child.stdin.close()
        return [] if self.child.wait(30) == 0 else ["memory is left"]


def got(answer, body):
    want = f"bytes {len(body)} {body.hex()}"
    return [] if answer == want else [f"got {answer[:200]!r}, not {want!r}"]


def main():
    store, below = Store("gs://bkt"), Store("gs://bkt/deep = er/")
    faults, keys = (
        [],
        [k for k in awkward_keys() if k[0] not in "/." and k[-1] != "/" and "//" not in k and "/." not in k],
    )
    for key in keys:  # the others it does not keep apart
        put(key, key.encode())
        put("deep = er/" + key, b"deeper " + key.encode())
        faults += got(store.read(key), key.encode()) + got(below.read(key), b"deeper " + key.encode())
    report("awkward keys are read exactly", faults or ([] if len(keys) > 15 else [f"only {len(keys)} keys"]))

    put("digits", b"0123456789")
    cases = {(0, 3): b"012", (4, 6): b"456789", (9, 1): b"9"}
    faults = [f"{r}: {a}" for r, want in cases.items() if (a := store.read("digits", *r)) != f"bytes 10 {want.hex()}"]
    report("ranges are exact", faults)
    answer = store.read("digits", 8, 5)
    report("a range beyond the end is an error", [] if answer.startswith("error ") else [answer])

    report("what is not there is missing", [a for a in [store.read("not/there")] if a != "missing"])
    gone = Store("gs://no-such-bucket")
    answer = gone.list("")
    report("a bucket that is not there is an error", [] if "no bucket of this name" in answer else [answer])
    faults = gone.close()

    for i in range(5):
        put(f"many/a b/{i:03d}", b"x")
    put("many/a b/sub+dir/k", b"x")
    many = Store("gs://bkt/many")
    names = many.list("a b")
    report("listings are complete", [] if names == [*(f"{i:03d}" for i in range(5)), "sub+dir/"] else [str(names)])
    names = many.list("")
    report("folders end in a slash", [] if names == ["a b/"] else [str(names)])
    report("nothing below is no error", [] if many.list("nothing/here") == [] else ["names"])
    report("stores close cleanly", faults + many.close() + store.close() + below.close())


port = rgw.free_port()
HOST = f"127.0.0.1:{port}"
URL = f"http://{HOST}"
emulator = create_server("127.0.0.1", port, in_memory=True)
emulator.start()
try:
    post("/storage/v1/b?project=test", json.dumps({"name": "bkt"}).encode())
    main()
finally:
    emulator.stop()
print(f"1..{nth}")
sys.exit(bool(failed))
