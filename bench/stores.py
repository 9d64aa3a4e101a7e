"""The cells of stores: the library's own beside bare GETs and obstore, near and far; stores of others beside a gather.

Objects are raw chunks of 64 KiB or 1 MiB, so that nothing is decoded. The bare loop has the number of transfers that
was fastest here, tried first; the library finds its own. Its store (bench/get.c --store) is what a list of keys is read
with, its loader an epoch of the archive through the public API, batches included.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import nginx
import wan

import programs
from programs import BUILD, DATA, OUT, Failed, Result
from report import Row

if TYPE_CHECKING:
    from run import Bench

Way = tuple[nginx.Nginx, list[str]]
Runs = dict[str, Callable[[], Result]]
Cells = dict[str, tuple[list[str], Callable[[], None]]]

BARE, STORE, LOADER = "bare GETs", "headrace, store", "headrace, loader"
LARGEST = ("--largest", 1 << 20)
NEAR, FAR = (8, 16, 32, 64), (16, 32, 64, 128, 256)  # transfers that the bare loop is tried with
SHARE, FIRST, BRIDGE, SIGNING_US = 0.9, 1.3, 0.85, 5
SIZES = ("object_64k", "object_1m")
KEYS = {"key": "AKIDEXAMPLE", "secret": "secret", "region": "us-east-1"}
OBSTORE_KEYS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "secret", "region": "us-east-1"}
WAYS = {"obstore, async": ("async", 64), "obstore, threads": ("threads", 16)}
# name: does it hand out its own bytes? Then a gather moves none, and what it is held against copies each once.
BRIDGED = {
    "zarr LocalStore": False, "zarr MemoryStore": True, "obstore LocalStore": False, "obstore MemoryStore": True,
    "obstore HTTPStore": False, "fsspec file": False, "fsspec memory": False,
}  # fmt: skip


def paired(raw: dict[str, list[Result]], over: str, under: str, key: str) -> list[float]:
    """Seconds a byte of one over those of the other, round by round: a list may be read more often than an epoch."""
    return [a[key] / a["bytes"] / (b[key] / b["bytes"]) for a, b in zip(raw[over], raw[under])]


class Stores:
    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def cells(self) -> Cells:
        out: Cells = {}
        for archive in SIZES:
            label = archive.removeprefix("object_")
            out[f"net_{label}"] = ([archive], partial(self.near, f"net_{label}", archive, False))
            out[f"net_{label}_tls"] = ([archive], partial(self.near, f"net_{label}_tls", archive, True))
            out[f"s3_{label}"] = ([archive], partial(self.signed, f"s3_{label}", archive))
            out[f"wan_{label}"] = ([archive], partial(self.far, f"wan_{label}", archive))
        out["wan_first"] = (["zstd_c1", "zstd_c8"], self.first)
        for archive in SIZES:
            label = archive.removeprefix("object_")
            out[f"bridge_{label}"] = ([archive], partial(self.bridge, f"bridge_{label}", archive))
        out["signing"] = ([], self.signing)
        return out

    # ---- servers and programs ----------------------------------------------------------------------------------------

    @contextmanager
    def served(self, cell: str, bars: list[str], far: bool = False) -> Iterator[Way | None]:
        """nginx over bench/data, and what to put before a client's command; None, and why, where that cannot be."""
        if reason := nginx.missing() or (wan.missing() if far else None):
            for what in bars:
                self.bench.skip(cell, what, reason)
            yield None
        elif far:
            with wan.Wan() as way, nginx.Nginx(DATA, OUT / "nginx", way.server) as server:
                yield server, way.client
        else:
            with wan.Near() as near, nginx.Nginx(DATA, OUT / "nginx", near.within) as server:
                yield server, near.within

    def best(self, tried: tuple[int, ...], run: Callable[[int], Result]) -> int:
        times = 1 if self.bench.quick else 2
        return min(tried, key=lambda n: min(run(n)["wall"] for _ in range(times)))

    def interleave(self, cell: str, runs: Runs) -> dict[str, list[Result]]:
        """The rounds of each program, and a row each, beside the first."""
        self.bench.interleave(cell, runs, floor=BARE)
        raw: dict[str, list[Result]] = self.bench.report.rounds[cell]
        for name, results in raw.items():
            best = min(results, key=lambda r: r["wall"])
            gets = best.get("gets")
            self.bench.report.rows.append(
                Row(cell, name, mb_s=best["bytes"] / best["wall"] / 1e6,
                    share=median(paired(raw, BARE, name, "wall")), cpu=min(paired(raw, name, BARE, "cpu")),
                    gets_s=gets and gets / best["wall"], cpu_gb=min(r["cpu"] / r["bytes"] for r in results) * 1e9)
            )  # fmt: skip
        return raw

    def share_bar(self, cell: str, raw: dict[str, list[Result]], name: str, note: str) -> None:
        share = median(paired(raw, BARE, name, "wall")) if name in raw else None
        note = note if name in raw else self.bench.errors.get((cell, name), "")
        self.bench.bar(cell, f"{name}: share of bare GETs", SHARE, True, share, note=note)

    def over_obstore(self, cell: str, raw: dict[str, list[Result]], name: str = STORE) -> None:
        """Against whichever way of using it was faster in the same round."""
        ways = [raw[way] for way in WAYS if way in raw]
        if not ways or name not in raw:
            self.bench.bar(cell, f"{name}: speed over obstore", 1.0, True, None, "×", "obstore did not run")
            return
        fastest = [min(results, key=lambda r: r["wall"]) for results in zip(*ways)]
        against = {"obstore": fastest, name: raw[name]}
        speed = median(paired(against, "obstore", name, "wall"))
        cpu = median(paired(against, name, "obstore", "cpu"))
        self.bench.bar(cell, f"{name}: speed over obstore", 1.0, True, speed, "×")
        self.bench.bar(cell, f"{name}: CPU over obstore", 1.0, False, cpu, "×")

    def obstore(self, archive: str, rounds: int, base: str, options: str, within: list[str]) -> Runs:
        keys = programs.list_of(archive)
        common = ("--base", base, "--options", options, "--rounds", rounds)
        return {
            name: partial(programs.obstore, *common, "--way", way, "--in-flight", n, keys, within=within)
            for name, (way, n) in WAYS.items()
        }

    def epoch(self, archive: str, url: str, within: list[str]) -> Result:
        r = programs.loader("headrace", archive, "--memory", "256MiB", url=url, within=within)
        return {**r, "gets": r["samples"]}  # a chunk is a sample

    # ---- cells -------------------------------------------------------------------------------------------------------

    def near(self, cell: str, archive: str, tls: bool) -> None:
        """On loopback, where CPU is all that counts; the server shares it."""
        with self.served(cell, [f"{STORE}: share of bare GETs"]) as way:
            if not way:
                return
            server, within = way
            get = partial(programs.get, within=within)
            url = server.tls_url if tls else server.url
            rounds = 1 if self.bench.quick else 3
            urls = programs.list_of(archive, url)
            ca = ("--ca", server.certificate) if tls else ()
            common = (*ca, *LARGEST, "--base", f"{url}/{archive}.zarr", "--rounds", rounds)
            n = self.best(NEAR, lambda n: get(*common, "--in-flight", n, urls))
            runs: Runs = {
                BARE: partial(get, *common, "--in-flight", n, urls),
                STORE: partial(get, "--store", "--adapt", *common, "--in-flight", 64, urls),
            }
            if not tls:
                programs.loader("headrace", archive, "--check", url=url, within=within)
                runs[LOADER] = partial(self.epoch, archive, url, within)
                runs |= self.obstore(archive, rounds, f"{url}/{archive}.zarr", "{}", within)
            raw = self.interleave(cell, runs)
            self.share_bar(cell, raw, STORE, f"{n} transfers at once")
            if not tls:
                self.over_obstore(cell, raw)

    def signed(self, cell: str, archive: str) -> None:
        """The same objects as s3://: every request is signed, though nginx does not look."""
        with self.served(cell, [f"{STORE}: speed over obstore"]) as way:
            if not way:
                return
            server, within = way
            get = partial(programs.get, within=within)
            url = server.url
            rounds = 1 if self.bench.quick else 3
            urls = programs.list_of(archive, url)
            options = json.dumps({**KEYS, "endpoint_url": url})
            theirs = json.dumps({**OBSTORE_KEYS, "endpoint": url})
            common = (*LARGEST, "--base", f"{url}/{archive}.zarr", "--rounds", rounds)
            n = self.best(NEAR, lambda n: get(*common, "--in-flight", n, urls))
            as_s3 = ("--as", f"s3://{archive}.zarr", "--options", options)
            runs: Runs = {
                BARE: partial(get, *common, "--in-flight", n, urls),
                STORE: partial(get, "--store", "--adapt", *common, *as_s3, "--in-flight", 64, urls),
                **self.obstore(archive, rounds, f"s3://{archive}.zarr", theirs, within),
            }
            raw = self.interleave(cell, runs)
            self.over_obstore(cell, raw)

    def far(self, cell: str, archive: str) -> None:
        """20 ms away over 10 Gbit/s, from the first connection on."""
        with self.served(cell, [f"{name}: share of bare GETs" for name in (STORE, LOADER)], far=True) as way:
            if not way:
                return
            server, within = way
            get = partial(programs.get, within=within)
            urls = programs.list_of(archive, server.url)
            common = (*LARGEST, "--base", f"{server.url}/{archive}.zarr")
            n = self.best(FAR, lambda n: get(*common, "--in-flight", n, urls))
            raw = self.interleave(cell, {
                BARE: partial(get, *common, "--in-flight", n, urls),
                STORE: partial(get, "--store", "--adapt", *common, "--in-flight", 256, urls),
                LOADER: partial(self.epoch, archive, server.url, within),
            })  # fmt: skip
            for name in (STORE, LOADER):
                self.share_bar(cell, raw, name, f"{n} transfers at once")

    def first(self) -> None:
        """A first batch from 20 ms away, against what it needs: a connection, the metadata, its chunks, decoding."""
        orders = {"shuffled": (), "in order": ("--sequential",)}
        archives = ("zstd_c1", "zstd_c8")
        whats = {(a, o): f"{a}, first batch {o} over bare GETs and decoding" for a in archives for o in orders}
        with self.served("wan_first", list(whats.values()), far=True) as way:
            if not way:
                return
            for (archive, order), what in whats.items():
                self.first_batch(archive, orders[order], what, way)

    def first_batch(self, archive: str, order: tuple[str, ...], what: str, way: Way) -> None:
        server, within = way
        ratios: list[float] = []
        per_chunk = int(archive.rsplit("_c", 1)[1])
        chunks, note, n = OUT / "wan_first.chunks", "", 0
        metadata, base = f"{server.url}/{archive}.zarr/zarr.json", ("--base", f"{server.url}/{archive}.zarr")

        def bare(n: int) -> Result:
            return programs.get("--before", metadata, *LARGEST, *base, "--in-flight", n, urls, within=within)

        try:
            for _ in range(3 if self.bench.quick else 9):
                r = programs.loader("headrace", archive, "--first", *order, url=server.url, within=within)
                needed = sorted({i // per_chunk for i in r["index"]})
                chunks.write_text("\n".join(map(str, needed)))
                urls = programs.list_of(archive, server.url, needed)
                n = n or self.best(FAR, bare)
                gets, decoding = bare(n)["wall"], programs.floor(archive, "--list", chunks)["wall"]
                ratios.append(r["first_batch"] / (gets + decoding))
                ms = [f"{1e3 * s:.0f}" for s in (r["first_batch"], gets, decoding)]
                note = f"{len(needed)} chunks; {ms[0]} ms over {ms[1]} + {ms[2]}; {n} transfers at once"
        except Failed as e:
            note = str(e)[:160]
        self.bench.report.rounds[what] = {"ratio": ratios}
        self.bench.bar("wan_first", what, FIRST, False, median(ratios) if ratios else None, "×", note)

    def bridge(self, cell: str, archive: str) -> None:
        raw: dict[str, Any] = {}
        self.bench.report.rounds[cell] = raw
        with nginx.Nginx(DATA, OUT / "nginx") if not nginx.missing() else nullserver() as server:
            for name, own_bytes in BRIDGED.items():
                what = f"{name}: share of {'a gather that copies once' if own_bytes else 'a bare gather'}"
                if name.endswith("HTTPStore") and not server:
                    self.bench.skip(cell, what, nginx.missing() or "")
                    continue
                common = ("--store", name, "--archive", archive, *(("--url", server.url) if server else ()))
                try:
                    programs.bridge(*common, "--check")
                    raw[name] = r = programs.bridge(*common, "--rounds", self.bench.rounds)
                except Failed as e:
                    self.bench.bar(cell, what, BRIDGE, True, None, note=str(e)[:160])
                    continue
                self.bridge_bar(cell, what, name, r, "landed" if own_bytes else "gather")

    def bridge_bar(self, cell: str, what: str, name: str, r: Result, against: str) -> None:
        def share(key: str, of: str) -> float:
            return median(float(a[key] / b[key]) for a, b in zip(r[of], r["bridge"]))

        best = min(r["bridge"], key=lambda b: b["wall"])
        shares = [share("wall", of) for of in ("gather", "landed")]
        row = Row(cell, name, mb_s=best["bytes"] / best["wall"] / 1e6, gets_s=best["gets"] / best["wall"])
        row.share, row.cpu, row.cpu_gb = (
            share("wall", against),
            1 / share("cpu", against),
            best["cpu"] / best["bytes"] * 1e9,
        )
        row.note = "{:.2f} of a bare gather, {:.2f} of one that copies once".format(*shares)
        self.bench.report.rows.append(row)
        self.bench.bar(cell, what, BRIDGE, True, share("wall", against))

    def signing(self) -> None:
        try:
            costs = {k: v for k, v in programs.run_json([BUILD / "bench" / "sign"]).items() if k != "spawned"}
        except Failed as e:
            self.bench.bar("signing", "a request", SIGNING_US, False, None, "µs", str(e)[:160])
            return
        self.bench.report.rounds["signing"] = costs
        for scheme, us in costs.items():
            self.bench.bar("signing", f"a request, {scheme}", SIGNING_US, False, us, "µs")


@contextmanager
def nullserver() -> Iterator[None]:
    yield None
