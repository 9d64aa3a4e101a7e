"""A throw-away Ceph RADOS Gateway, the real S3 of the wire tests: one monitor, one OSD in memory, one gateway.

All on loopback, no cephx, no systemd; the state lies in a folder of its own (short: it holds UNIX sockets) and goes with
it. Debian: ceph-mon, ceph-osd, radosgw. Starts in about two seconds.
"""

import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import uuid

PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "monmaptool", "ceph")
FSID = "2b7c1c43-0d4e-4b86-9f0a-6d1b7f5e8a10"
# What is not obvious: "crc secure", because the gateway's default hangs without cephx; short paxos times, or each pool
# takes a second; a DNS name, for http://bucket.localhost; STS tokens that live for a second.
CONF = """[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon_port}/0]
mon initial members = a
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = none
auth service required = none
auth client required = none
ms mon client mode = crc secure
run dir = {dir}/run
admin socket = {dir}/run/$name.asok
pid file = {dir}/run/$name.pid
log file = {dir}/log/$name.log
crash dir = {dir}/crash
log to stderr = false
err to stderr = false
mon data = {dir}/mon
mon data avail warn = 1
mon data avail crit = 1
mon allow pool size one = true
mon warn on pool no redundancy = false
mon max pg per osd = 1000
mon tick interval = 1
auth allow insecure global id reclaim = true
paxos propose interval = 0.02
paxos min wait = 0.005
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pgp num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd crush update on start = false
osd data = {dir}/osd
osd objectstore = memstore
osd op num shards = 2
osd op num threads per shard = 1
memstore device bytes = 2147483648
rgw data = {dir}/rgw
rgw frontends = beast endpoint=127.0.0.1:{port} {tls}
rgw dns name = localhost
rgw s3 auth use sts = true
rgw sts key = abcdefghijklmnop
rgw sts min session duration = 1
rgw thread pool size = 64
rgw enable gc threads = false
rgw enable lc threads = false
rgw enable quota threads = false
rgw enable sync threads = false
rgw run sync thread = false
"""


def missing():
    """Why it cannot run here, or None."""
    absent = [p for p in PROGRAMS if not shutil.which(p)]
    if absent:
        return f"not installed: {', '.join(absent)}"
    return None if os.geteuid() == 0 else "ceph's daemons want root"


def free_port():
    """Below the ports that the kernel gives to outgoing connections, so that none of these takes it meanwhile."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Gateway:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="hr-rgw-", dir="/tmp")
        self.port, self.tls_port, self.mon_port = free_port(), free_port(), free_port()
        self.certificate = f"{self.dir}/tls.pem"
        self.conf = f"{self.dir}/ceph.conf"

    def run(self, *command, timeout=60):
        return subprocess.run(
            command,
            check=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "CEPH_CONF": self.conf, "CEPH_ARGS": ""},
        ).stdout

    def admin(self, *command):
        return self.run("radosgw-admin", "-c", self.conf, "-n", "client.rgw.a", *command)

    def write_conf(self):
        for name in ("run", "log", "mon", "osd", "rgw", "crash"):
            pathlib.Path(self.dir, name).mkdir()
        self.run(
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,DNS:*.localhost"),
            *("-keyout", f"{self.dir}/tls.key", "-out", self.certificate),
        )
        tls = f"ssl_endpoint=127.0.0.1:{self.tls_port} ssl_certificate={self.certificate} ssl_private_key={self.dir}/tls.key"
        text = CONF.format(fsid=FSID, dir=self.dir, port=self.port, mon_port=self.mon_port, tls=tls)
        pathlib.Path(self.conf).write_text(text)

    def start(self):
        self.write_conf()
        c, monmap = ("-c", self.conf), f"{self.dir}/monmap"
        self.run("monmaptool", "--create", "--fsid", FSID, "--addv", "a", f"[v2:127.0.0.1:{self.mon_port}]", monmap)
        self.run("ceph-mon", *c, "-i", "a", "--mkfs", "--monmap", monmap)
        self.run("ceph-mon", *c, "-i", "a")
        osd = str(uuid.uuid4())
        self.run("ceph", *c, "osd", "new", osd)
        self.run("ceph-osd", *c, "-i", "0", "--mkfs", "--osd-uuid", osd)
        self.run("ceph", *c, "osd", "crush", "add", "osd.0", "1.0", "root=default", "host=here")
        self.run("ceph-osd", *c, "-i", "0")
        self.run("radosgw", *c, "-n", "client.rgw.a")
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=2)
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the gateway does not answer")

    def throttle(self, most):
        """At most so many requests at once; more get 503 SlowDown."""
        socket_path = f"{self.dir}/run/client.rgw.a.asok"
        self.run("ceph", "--admin-daemon", socket_path, "config", "set", "rgw_max_concurrent_requests", str(most))

    def stop(self):
        pids = [int(p.read_text()) for p in pathlib.Path(self.dir, "run").glob("*.pid") if p.read_text().strip()]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)  # nothing in it is worth keeping
            except ProcessLookupError:
                pass
        for _ in range(100):
            if not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids):
                break
            time.sleep(0.02)
        shutil.rmtree(self.dir, ignore_errors=True)
