"""Archives on S3: written by zarr-python, uploaded by botocore, read as batches and by the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import zarr

import headrace as hr

SERVER = Path(__file__).resolve().parent.parent / "wire" / "s3_server.py"
PROGRAM = shutil.which("headrace", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}") or "headrace"


class Bucket:
    """A server of tests/wire with its bucket "bkt"."""

    def __init__(self, kind: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, SERVER, kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        line = self.answer()
        if line.startswith("skip") or not line:
            self.close()
            pytest.skip(line.removeprefix("skip ") or "the server does not start")
        port, _, _, key, secret = line.split()
        self.options = {"endpoint_url": f"http://127.0.0.1:{port}", "key": key, "secret": secret}
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("AWS_")},
            "AWS_ENDPOINT_URL": self.options["endpoint_url"], "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret,
        }  # fmt: skip

    def answer(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def upload(self, folder: Path, prefix: str) -> None:
        assert self.process.stdin
        print("folder bkt", prefix.encode().hex(), str(folder).encode().hex(), file=self.process.stdin, flush=True)
        assert self.answer() == "ok"

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(20)


@pytest.fixture(scope="module", params=["moto", "rgw"])
def bucket(request: pytest.FixtureRequest) -> Iterator[Bucket]:
    b = Bucket(request.param)
    yield b
    b.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two arrays under an awkward name, one of them sharded, some chunks never written."""
    path = tmp_path_factory.mktemp("s3") / "a=b c+d.zarr"
    root = zarr.create_group(path, zarr_format=3)
    names = ("time", "y", "x")
    rng = np.random.default_rng(0)
    t2m = root.create_array(
        "t2m", shape=(96, 20, 30), chunks=(4, 20, 30), dtype="f4", fill_value=-1, dimension_names=names
    )
    t2m[8:] = rng.normal(size=(88, 20, 30)).astype("f4")
    deep = root.create_array("deep/u 10", shape=(96, 16), chunks=(2, 8), shards=(24, 16), dtype="i2")
    deep[...] = rng.integers(0, 1000, (96, 16)).astype("i2")
    return path


@pytest.fixture(scope="module")
def prefix(bucket: Bucket, folder: Path) -> str:
    bucket.upload(folder, "data/a=b c+d.zarr/")
    return "s3://bkt/data/a=b c+d.zarr"


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_equal_what_was_written(bucket: Bucket, folder: Path, prefix: str, shuffle: bool) -> None:
    local = zarr.open_group(folder, mode="r")
    archive = hr.open(prefix, bucket.options)
    for name in ("t2m", "deep/u 10"):
        assert np.array_equal(archive[name][...], local[name][...])
    seen = np.zeros(96, int)
    with hr.open(prefix, bucket.options).samples(along="time", x="t2m").batches(8, shuffle=shuffle, seed=1) as loader:
        for batch in loader:
            seen[batch.index] += 1
            assert np.array_equal(batch["x"].numpy(), local["t2m"][...][batch.index])
        stats = loader.stats()["store"]
    assert (seen == 1).all()
    assert stats["missing"] >= 2


def test_the_command_line_reads_with_the_environment(bucket: Bucket, prefix: str) -> None:
    done = subprocess.run([PROGRAM, "inspect", prefix], env=bucket.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "t2m" in done.stdout
    assert "u 10" in done.stdout


def test_errors_name_bucket_and_remedy(bucket: Bucket, prefix: str) -> None:
    with pytest.raises(OSError, match=r"s3://no-such-bucket.*NoSuchBucket.*endpoint_url"):
        hr.open("s3://no-such-bucket/x", bucket.options)
    with pytest.raises(ValueError, match='did you mean "endpoint_url"'):
        hr.open(prefix, {"endpoint_ur": "x"})
    with pytest.raises(OSError, match=r"s3://bkt/data/.*403") as caught:
        hr.open(prefix, {**bucket.options, "secret": "NOT-THE-SECRET"})
    assert "NOT-THE-SECRET" not in str(caught.value)
    with pytest.raises(hr.Error, match="directory bucket"):
        hr.open("s3://logs--usw2-az1--x-s3/x")
