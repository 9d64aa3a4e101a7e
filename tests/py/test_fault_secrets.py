"""Nothing that says who we are comes out: not in logs, errors, reprs, reports or states, whatever goes wrong. Pickles
of archives are made to be opened elsewhere, and carry the options that were given."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from faults import QUICK, Server, archive, serving, watched

__all__ = ["archive", "watched"]  # fixtures

KEY = base64.b64encode(b"HIDDEN-account-key-of-64-bytes-HIDDEN-account-key-of-64-bytes-XX").decode()
# How the place is opened: kind of server, URL, options; and what must not be seen (HIDDEN, besides the key).
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "keys": ("s3", "s3://bkt", {"key": "HIDDENID", "secret": "HIDDENsecret", "token": "HIDDENtoken", "endpoint_url": "{host}"}),
    "presigned": ("http", "{host}/?X-Amz-Credential=HIDDENid&X-Amz-Signature=HIDDENsignature", {}),
    "password": ("http", "http://HIDDENuser:HIDDENpassword@127.0.0.1:{port}", {}),
    "header": ("http", "{host}", {"headers": {"Authorization": "Bearer HIDDENbearer", "X-Api-Key": "HIDDENkey"}}),
    "proxy": ("http", "{host}", {"proxy": "http://HIDDENuser:HIDDENpassword@127.0.0.1:{port}"}),
    "bearer": ("gs", "gs://bkt", {"access_token": "ya29.HIDDENtoken", "endpoint_url": "{host}"}),
    "hmac": ("gs", "gs://bkt", {"key": "HIDDENid", "secret": "HIDDENsecret", "endpoint_url": "{host}"}),
    "sas": ("az", "az://box", {"account_name": "acct", "sas_token": "sv=2024-05-04&sp=r&sig=HIDDENsignature%3D", "endpoint": "{host}/acct", "allow_http": True}),
    "account key": ("az", "az://box", {"account_name": "acct", "account_key": KEY, "endpoint": "{host}/acct", "allow_http": True}),
    "token": ("az", "az://box", {"account_name": "acct", "token": "HIDDENtoken", "endpoint": "{host}/acct", "allow_http": True}),
    "client": ("az", "az://box", {"account_name": "acct", "tenant_id": "t", "client_id": "c", "client_secret": "HIDDENsecret", "authority_host": "{host}", "endpoint": "{host}/acct", "allow_http": True}),
    "connection string": ("az", "az://box", {"connection_string": f"BlobEndpoint={{host}}/acct;AccountName=acct;AccountKey={KEY}"}),
}  # fmt: skip

PROGRAM = """
import json, logging, sys, traceback, urllib.request
import headrace as hr
logging.basicConfig(level=1, stream=sys.stdout)
def show(what):
    try:
        print(what())
    except Exception:
        traceback.print_exc(file=sys.stdout)
def look(url, options, ends):
    archive = hr.open(url, options)
    samples = archive.samples(along="time", x="whole", y="sharded")
    loader = samples.batches(4, shuffle=True)
    objects = archive, archive["whole"], samples, loader
    try:
        for i, batch in enumerate(loader):
            if i == 2 and ends:
                break
    finally:
        for one in objects:
            for how in (repr, str, lambda x: x._repr_html_(), lambda x: vars(x)):
                show(lambda: how(one))
        for what in (lambda: archive.info, lambda: samples.info, loader.plan, loader.stats, loader.state_dict, archive.tree):
            show(what)
        loader.close()
        show(lambda: next(iter(loader)))
for url, options, ends in json.load(sys.stdin):
    show(lambda: look(url, options, ends))
print("that was all")
"""


def fill(value: Any, server: Server, port: int | None = None) -> Any:
    if isinstance(value, dict):
        return {k: fill(v, server, port) for k, v in value.items()}
    here = str(port or server.port)
    return (
        value.replace("{host}", f"http://127.0.0.1:{here}").replace("{port}", here) if isinstance(value, str) else value
    )


def watch_out(tasks: list[Any], **env: str) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "AZURE_", "GOOGLE_"))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], input=json.dumps(tasks), capture_output=True, text=True,
        timeout=250, check=False, env={**clean, "HEADRACE_LOG": "debug", **env},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "that was all" in done.stdout
    return done.stdout + done.stderr


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("fault", ["none", "denied", "internal", "redirect", "short", "misnamed", "absent"])
def test_no_secret_comes_out(archive: str, case: str, fault: str) -> None:
    kind, url, options = CASES[case]
    few = {"max_retries": 1, "first_byte_timeout": 0.5, "connect_timeout": 2}
    chosen = (fault,) if fault not in ("none", "absent") else ()
    with serving(archive, chosen, 1.0 if chosen else 0.0, kind) as server:
        server.everything = fault == "denied"
        there, given = fill(url, server), {**few, **fill(options, server)}
        tasks: list[Any] = [[there, given, fault != "none"]]
        if fault == "absent":
            server.stop()
        if fault == "none":  # what is said of what cannot be opened
            misspelt = {**given, **{k + "x": v for k, v in given.items() if isinstance(v, str)}}
            tasks += [
                [there, misspelt, True],
                [there.replace("http:", "https:"), given, True],
                [there + "\n", given, True],
            ]
            tasks += [[there, {**given, "endpoint_url": "nonsense"}, True]]
        said = watch_out(tasks)
    for secret in ("HIDDEN", KEY, KEY[:20]):
        at = said.find(secret)
        assert at < 0, said[max(0, at - 300) : at + 100]
    if fault == "none" and case not in ("client", "proxy"):
        assert "GET " in said, said[-3000:]


def test_the_log_shows_each_request(archive: str) -> None:
    """HEADRACE_LOG=debug: method, place, range, status, bytes, time, try, connection."""
    with serving(archive, ("busy",), 0.1, "s3") as server:
        url, options = server.kind.open(server.port)
        said = watch_out([[url, {**options, **QUICK}, False]])
        lines = [line for line in said.splitlines() if re.match(r"headrace \d\d:\d\d:\d\d\.\d{3}Z: GET ", line)]
        assert len(lines) == server.requests
    assert any("503" in line and "try 1" in line for line in lines)
    assert any(
        "sharded/c/" in line and " bytes=" in line and "206," in line and "kept connection" in line for line in lines
    )
