"""What reading has cost: of this process, and of the others of the same dataset (a DataLoader's workers)."""

from __future__ import annotations

import json
import os
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

_SUMS = ("bytes", "downloads", "hits", "download_s", "wait_s", "evictions", "redownloads")


class Stats:
    """Counters. Those of other processes lie as files in `folder`, which is None where there is no cache."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.begin()

    def begin(self) -> None:
        """Nothing was counted yet, in this process."""
        self._guard = threading.Lock()
        self._sums: dict[str, float] = dict.fromkeys(_SUMS, 0)
        self._first: float | None = None
        self._last = 0.0
        self._cold: float | None = None

    def add(self, **counts: float) -> None:
        with self._guard:
            for name, n in counts.items():
                self._sums[name] += n
        if "bytes" in counts:
            self.publish()

    def begun(self) -> None:
        """Somebody asks for rows: the clock runs from the first time on."""
        if self._first is None:
            self._first = time.perf_counter()

    def served(self) -> None:
        self._last = time.perf_counter()
        if self._cold is None and self._first is not None:
            self._cold = self._last - self._first

    def _own(self) -> dict[str, float]:
        wall = self._last - self._first if self._first is not None and self._last else 0.0
        return {**self._sums, "cold_s": self._cold or 0.0, "wall_s": wall}

    def publish(self) -> None:
        """For the other processes of this dataset."""
        if self._folder is None:
            return
        path = self._folder / f"{os.getpid()}.json"
        temporary = path.with_suffix(f".{threading.get_ident()}")
        try:
            temporary.write_text(json.dumps(self._own()))
            os.replace(temporary, path)
        except OSError:
            pass  # counters are not worth an error

    def _others(self) -> list[dict[str, float]]:
        found = []
        for path in self._folder.glob("*.json") if self._folder is not None else ():
            if path.name != f"{os.getpid()}.json":
                try:
                    found.append(json.loads(path.read_text()))
                except (OSError, ValueError):
                    pass
        return found

    def summary(self) -> dict[str, Any]:
        """Times in seconds, sizes in MB (10⁶ bytes), `throughput_mbps` in MB/s.

        `total_wait_time_sec` is all the time in which rows were asked for and not there, the cold start within it; with
        workers the sum over them. `cold_start_time_sec` ends with the first rows. `cache_hits` counts chunks that were
        asked for and there, `redownload_count` those that came down again though they had been there.
        """
        everybody = [self._own(), *self._others()]
        total = {name: sum(x.get(name, 0) for x in everybody) for name in _SUMS}
        wall = max(x.get("wall_s", 0) for x in everybody)
        cold = [x["cold_s"] for x in everybody if x.get("cold_s")]
        mb = total["bytes"] / 1e6
        return {
            "cold_start_time_sec": round(min(cold, default=0.0), 4),
            "wall_clock_time_sec": round(wall, 4),
            "total_wait_time_sec": round(total["wait_s"], 4),
            "total_bytes_downloaded_mb": round(mb, 4),
            "download_count": int(total["downloads"]),
            "redownload_count": int(total["redownloads"]),
            "eviction_count": int(total["evictions"]),
            "cache_hits": int(total["hits"]),
            "throughput_mbps": round(mb / wall, 2) if wall else 0.0,
            "per_thread_throughput_mbps": round(mb / total["download_s"], 2) if total["download_s"] else 0.0,
        }
