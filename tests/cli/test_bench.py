"""headrace bench."""

from __future__ import annotations

import json
import os
import pty
import subprocess

from program import PROGRAM, climate, good, run

ASKED = ["--along", "time", "--view", "x=t2m,u10;time=-1,0"]


def test_figures_add_up() -> None:
    words = ["bench", climate(), *ASKED, "--batch", 7, "--shuffle", "--epochs", 3, "--json"]
    figures = json.loads(good(*words))
    steps = 59 // 7 * 3
    assert figures["steps"] == figures["stats"]["batches"] == steps
    assert figures["samples"] == figures["valid_samples"] == steps * 7
    assert 0 < figures["first_batch_seconds"] <= figures["seconds"]
    assert figures["samples_per_second"] * figures["seconds"] - figures["samples"] < 0.01 * figures["samples"]
    tensor_bytes = figures["tensor_bytes_per_second"] * figures["seconds"]
    assert abs(tensor_bytes / (steps * 7 * 2 * 2 * 6 * 8 * 4) - 1) < 1e-3
    assert 0 < figures["wait_share"] <= 1 and figures["peak_resident_bytes"] > 1e6


def test_padding_is_counted_apart() -> None:
    figures = json.loads(good("bench", climate(), *ASKED, "--batch", 7, "--remainder", "pad", "--json"))
    assert (figures["samples"], figures["valid_samples"]) == (63, 59)


def test_steps_end_the_measurement() -> None:
    figures = json.loads(good("bench", climate(), *ASKED, "--batch", 4, "--steps", 5, "--epochs", 9, "--json"))
    assert figures["steps"] == 5


def test_a_pretended_training_step_leaves_less_waiting() -> None:
    words = ["bench", climate(), *ASKED, "--batch", 4, "--steps", 8, "--json"]
    busy = json.loads(good(*words, "--step-time", 20))
    assert busy["seconds"] >= 7 * 0.02 and busy["wait_share"] < 0.9


def test_the_table_is_quiet_about_progress_without_a_terminal() -> None:
    text = good("bench", climate(), *ASKED, "--batch", 4)
    for label in ("batches", "throughput", "first batch", "waiting", "chunks", "memory"):
        assert f"\n{label:<12}" in "\n" + text
    seconds, unit = text.splitlines()[0].split(" in ")[1].split()
    assert float(seconds) > 0 and unit in ("µs", "ms", "s")


def test_progress_goes_to_the_terminal_and_results_to_the_pipe() -> None:
    leader, follower = pty.openpty()
    words = [PROGRAM, "bench", climate(), *ASKED, "--batch", "2", "--step-time", "15", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=follower, text=True) as child:
        os.close(follower)
        assert child.stdout is not None
        figures = json.loads(child.stdout.read())
    shown = ""
    while not shown.endswith("\r\x1b[K"):  # what was written may come in parts; at the end reading fails
        try:
            shown += os.read(leader, 65536).decode()
        except OSError:
            break
    os.close(leader)
    assert figures["steps"] == 30 and "samples/s" in shown and "step " in shown and shown.endswith("\r\x1b[K")


def test_a_broken_chunk_fails_with_its_name(tmp_path: object) -> None:
    subprocess.run(["cp", "-r", climate(), f"{tmp_path}/copy.zarr"], check=True)
    chunk = f"{tmp_path}/copy.zarr/t2m/c/3/0/0"
    os.truncate(chunk, 20)
    done = run("bench", f"{tmp_path}/copy.zarr", *ASKED, "--batch", 4)
    assert done.returncode == 1 and "t2m/c/3/0/0" in done.stderr
    done = run("bench", f"{tmp_path}/copy.zarr", *ASKED, "--batch", 4, "--on-error", "mask", "--json")
    assert done.returncode == 0 and "masked: chunk t2m/c/3/0/0 of" in done.stderr
    masked = json.loads(done.stdout)
    assert masked["valid_samples"] < masked["samples"] and masked["stats"]["chunks"]["masked"] >= 1
