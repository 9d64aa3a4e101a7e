"""Memory outlives what it came from, in any order, on any thread, and after the interpreter's end."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import headrace as hr


def test_arrays_outlive_batch_loader_and_archive(climate: str) -> None:
    loader = hr.open(climate).samples(along="time", x="t2m").batches(20)
    arrays = [batch["x"].numpy() for batch in loader]
    copies = [a.copy() for a in arrays]
    loader.close()
    del loader
    gc.collect()
    for a, c in zip(arrays, copies):
        np.testing.assert_array_equal(a, c)
        a[...] = 0  # writable


def test_release_on_another_thread_after_close(climate: str) -> None:
    loader = hr.open(climate).samples(along="time", x="t2m").batches(20)
    kept = [batch["x"].numpy() for batch in loader]
    loader.close()
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()


@pytest.mark.parametrize("consumer", ["numpy", "numpy_dlpack", "torch"])
def test_interpreter_exit_while_arrays_live(climate: str, consumer: str) -> None:
    take = {"numpy": "b['x'].numpy()", "numpy_dlpack": "np.from_dlpack(b['x'])", "torch": "b['x'].torch()"}[consumer]
    program = f"""
import headrace as hr, numpy as np, sys
loader = hr.open({climate!r}).samples(along='time', x='t2m').batches(4, shuffle=True)
it = iter(loader)
kept = [{take} for b, _ in zip(it, range(3))]
sys.kept = kept  # never collected before the end
print(float(kept[0].sum()) == float(kept[0].sum()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr


@pytest.mark.alone
def test_close_is_idempotent_and_quick(climate: str) -> None:
    loader = hr.open(climate).samples(along="time", x="t2m").batches(4, shuffle=True)
    next(iter(loader))
    start = time.perf_counter()
    loader.close()
    loader.close()
    assert time.perf_counter() - start < 1.0
    with pytest.raises(hr.ClosedError):
        loader.next()


def test_two_loaders_at_once(climate: str) -> None:
    samples = hr.open(climate).samples(along="time", x="t2m")
    train, val = samples.split(0.7, 0.3)
    with train.batches(4, shuffle=True) as a, val.batches(4) as b:
        steps = sum(1 for _ in zip(a, b))
    assert steps == min(len(a), len(b))


def test_a_forked_child_is_told_and_can_open_its_own(climate: str) -> None:
    loader = hr.open(climate).samples(along="time", x="t2m").batches(4)
    iterator = iter(loader)
    next(iterator)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            try:
                next(iterator)
                text = "no error"
            except hr.ForkError:
                text = "told"
            own = hr.open(climate).samples(along="time", x="t2m").batches(4)
            text += f", own {sum(len(b) for b in own)}"
            os.write(write, text.encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 100).decode() == "told, own 60"
    next(iterator)


@pytest.mark.alone
def test_ctrl_c_returns_at_once(tmp_path: object) -> None:
    program = """
import headrace as hr, http.server, signal, threading, time, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # where the parent ignores it
class Stall(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.endswith('zarr.json') and 'x/' in self.path:
            body = b'{"zarr_format":3,"node_type":"array","shape":[8,4],"data_type":"float32","chunk_grid":{"name":"regular","configuration":{"chunk_shape":[1,4]}},"chunk_key_encoding":{"name":"default"},"fill_value":0,"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"dimension_names":["time","x"]}'
        elif self.path.endswith('/zarr.json'):
            body = b'{"zarr_format":3,"node_type":"group"}'
        elif '/c/' in self.path:
            time.sleep(60); return
        else:
            self.send_error(404); return
        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *a): pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Stall); server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
loader = hr.open(f'http://127.0.0.1:{server.server_port}').samples(along='time', x='x').batches(2)
print('waiting', flush=True)
try:
    next(iter(loader))
except KeyboardInterrupt:
    start = time.perf_counter(); loader.close()
    print('interrupted', time.perf_counter() - start < 1.0, flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline().strip() == "waiting"
    time.sleep(0.5)
    start = time.perf_counter()
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline().strip() == "interrupted True"
    assert time.perf_counter() - start < 2.0
    assert child.wait(10) == 0


def test_import_is_light() -> None:
    program = "import sys; import headrace; print([m for m in ('numpy', 'torch', 'json', 'typing', 're', 'logging') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(hr.__file__))},
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.alone
def test_memory_does_not_grow_over_epochs(climate: str) -> None:
    loader = hr.open(climate).samples(along="time", x="z").batches(6, shuffle=True, memory="4MB")

    def rss() -> int:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4096

    for _ in range(3):
        for _ in loader:
            pass
    before = rss()
    for _ in range(30):
        for _ in loader:
            pass
    assert rss() - before < 3_000_000
