"""Credentials that end every three seconds, a real gateway that throttles: epochs do not notice."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace as hr
from faults import QUICK, archive, epoch, opened, serving, shuffled, want, watched
from test_s3 import Bucket

__all__ = ["archive", "want", "watched"]  # fixtures
Batches = list[tuple[bytes, bytes]]


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """None of the user's own credentials."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_", "IDENTITY_", "GCE_", "MSI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def epochs_for(seconds: float, store: hr.Archive, want: Batches) -> int:
    """One after another, by one store object; the number of requests."""
    until, requests = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        with shuffled(store) as loader:
            assert list(epoch(loader)) == want
            requests = loader.stats()["store"]["requests"]
    return requests


@pytest.mark.parametrize("kind", ["s3", "gs", "az"])
def test_tokens_of_three_seconds(archive: str, want: Batches, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renewed ahead, and when they are revoked before their time, among other faults."""
    with serving(archive, ("expired", "busy", "short"), 0.03, kind, life=3) as server:
        for name, value in server.kind.environment(server.port).items():
            monkeypatch.setenv(name, value)
        server.delay = 0.003
        epochs_for(7, opened(server, **QUICK, concurrency=8), want)
        assert server.kind.tokens
        assert 3 <= len(server.kind.tokens.given) < 20


@pytest.fixture(scope="module")
def gateway(archive: str) -> Iterator[Bucket]:
    bucket = Bucket("rgw")
    bucket.upload(Path(archive), "a.zarr/")
    yield bucket
    bucket.close()


def ask(bucket: Bucket, command: str) -> str:
    assert bucket.process.stdin
    print(command, file=bucket.process.stdin, flush=True)
    return bucket.answer()


def test_a_role_of_three_seconds(
    gateway: Bucket, want: Batches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AssumeRole of the real gateway, by the profile's role; the store renews it again and again."""
    ask(gateway, "token 900")  # makes the role
    config = tmp_path / "config"
    keys = f"aws_access_key_id = {gateway.options['key']}\naws_secret_access_key = {gateway.options['secret']}\n"
    role = "role_arn = arn:aws:iam:::role/short\nsource_profile = base\nduration_seconds = 3\nregion = us-east-1\n"
    config.write_text(f"[profile base]\n{keys}[profile short]\n{role}")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_ENDPOINT_URL", gateway.options["endpoint_url"])
    store = hr.open("s3://bkt/a.zarr", {"profile": "short", **QUICK})
    assert epochs_for(8, store, want) > 100


def test_a_gateway_that_allows_four_requests_at_once(gateway: Bucket, want: Batches) -> None:
    assert ask(gateway, "throttle 4") == "ok"
    try:
        store = hr.open("s3://bkt/a.zarr", {**gateway.options, **QUICK})
        for _ in range(20):  # requests that are answered at once do not meet
            with shuffled(store) as loader:
                assert list(epoch(loader)) == want
                stats = loader.stats()["store"]
            if stats["throttles"]:
                break
        assert stats["throttles"] == stats["retries"]["throttle"] > 0
        assert f"throttled {stats['throttles']} times" in stats["summary"]
    finally:
        ask(gateway, "throttle 1024")
