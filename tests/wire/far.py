#!/usr/bin/env python3
"""A web server a long way off, over a line that loses packets: everything arrives as it is there.

    far.py PROGRAM          PROGRAM is store_ask of the build

The network is wan.py's: 20 ms there and back, one packet in five hundred lost. Prints TAP; skipped, with the reason, where
there can be no such network.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nginx
import wan

PROGRAM = sys.argv[1]
LARGE = 20 << 20  # fetched in parts
nth = failed = 0


def report(name, faults):
    global nth, failed
    nth, failed = nth + 1, failed + bool(faults)
    for fault in faults:
        print(f"# {fault}")
    print(f"{'not ok' if faults else 'ok'} {nth} - {name}", flush=True)


class Reader:
    """store_ask behind the long way."""

    def __init__(self, within, url, options):
        command = [*within, PROGRAM, url, json.dumps(options)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self, key, offset=0, length=0):
        print("read", key.encode().hex(), offset, length, file=self.process.stdin, flush=True)
        kind, _, rest = self.process.stdout.readline().strip().partition(" ")
        return bytes.fromhex(rest.partition(" ")[2]) if kind == "bytes" else f"{kind} {rest}"

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


def content(n, seed):
    return bytes((i * 31 + seed) & 255 for i in range(256)) * (n // 256)


def faults_of(reader, objects):
    faults = []
    for key, data in objects.items():
        for offset, length in ((0, 0), (len(data) // 4, len(data) // 2), (-512, 0)):
            whole = offset == length == 0
            want = data if whole else data[offset:] if offset < 0 else data[offset : offset + length]
            if (got := reader.read(key, offset, length)) != want:
                said = got[:200] if isinstance(got, str) else f"{len(got)} other bytes"
                faults.append(f"{key} from {offset}, {length} bytes: {said}")
    if (got := reader.read("nothing")) != "missing ":
        faults.append(f"what is not there: {got[:200]}")
    return faults


def main():
    if reason := nginx.missing() or wan.missing():
        print(f"1..0 # SKIP {reason}")
        return 0
    objects = {f"{i}": content(1 << (8 + 2 * i), i) for i in range(6)} | {"large": content(LARGE, 99)}
    with tempfile.TemporaryDirectory(prefix="headrace-far-") as folder:
        root = Path(folder, "www")
        root.mkdir()
        for key, data in objects.items():
            (root / key).write_bytes(data)
        with wan.Wan(10_000, 10, 2000) as way, nginx.Nginx(root, Path(folder, "nginx"), way.server) as server:
            for url, options in ((server.url, {}), (server.tls_url, {"ca_file": str(server.certificate)})):
                reader = Reader(way.client, url, options)
                start = time.monotonic()
                faults = faults_of(reader, objects)
                if time.monotonic() - start < 0.02 * 3 * len(objects):
                    faults.append("it is not far away at all")
                reader.close()
                report(f"objects, ranges and their absence over {url.partition(':')[0]}", faults)
    print(f"1..{nth}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
