"""Networks on one machine, with real TCP. `with Wan() as wan:` and then commands behind `wan.client` and `wan.server`.

Wan: a long way, two network namespaces that reach each other only through wanlink.c, which delays, limits and loses
packets. Near: loopback as it is elsewhere, where this machine's own paces what it sends (bbr).

The server is 127.0.0.1 and the client 127.0.0.2, so that programs which trust only this machine do so here. Needs
root, iproute2, /dev/net/tun and a C compiler; no netem, which many kernels lack. What cannot be had is said by missing().
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

SOURCE = Path(__file__).with_name("wanlink.c")
INTERFACE, SERVER, CLIENT = "wan0", "127.0.0.1", "127.0.0.2"
WINDOWS = ("net.ipv4.tcp_rmem=4096 131072 67108864", "net.ipv4.tcp_wmem=4096 65536 67108864")


def missing() -> str | None:
    """Why there can be no such network here."""
    if os.getuid() != 0:
        return "not root"
    if not Path("/dev/net/tun").exists():
        return "no /dev/net/tun"
    if not shutil.which("ip"):
        return "iproute2 is not installed"
    if not compiler():
        return "no C compiler"
    refused = run("ip", "netns", "add", name := f"headrace-try-{os.getpid()}")
    run("ip", "netns", "del", name)
    return f"no network namespaces: {refused}" if refused else None


def compiler() -> str | None:
    return shutil.which(os.environ.get("CC", "cc").split()[0])


def run(*command: str) -> str:
    """What it said, if it failed."""
    p = subprocess.run(command, capture_output=True, text=True, check=False)
    return (p.stderr.strip() or f"exit status {p.returncode}") if p.returncode else ""


def must(*command: str) -> None:
    if said := run(*command):
        raise RuntimeError(f"{' '.join(command)}: {said}")


class Near:
    """A namespace with nothing but loopback, and cubic. For client and server alike; behind nothing where that cannot be."""

    def __init__(self) -> None:
        self.name = f"headrace-near-{os.getpid()}"
        self.within: list[str] = []

    def __enter__(self) -> Near:
        if os.getuid() == 0 and shutil.which("ip") and not run("ip", "netns", "add", self.name):
            self.within = ["ip", "netns", "exec", self.name]
            run("ip", "-n", self.name, "link", "set", "lo", "up")
            for here in ("127.0.0.0/8", "127.0.0.1"):
                own = ["dev", "lo", "table", "local", "proto", "kernel", "scope", "host", "src", "127.0.0.1"]
                run("ip", "-n", self.name, "route", "change", "local", here, *own, "congctl", "cubic")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.within:
            remove(self.name)


def remove(namespace: str) -> None:
    for _ in range(50):  # programs in it may still be ending
        if not run("ip", "netns", "del", namespace) or not Path("/run/netns", namespace).exists():
            break
        time.sleep(0.02)


class Wan:
    """one_way_us microseconds each way, gbits Gbit/s, loss_ppm packets of a million lost in each direction."""

    def __init__(self, one_way_us: int = 10_000, gbits: float = 10, loss_ppm: int = 0) -> None:
        self.numbers = (str(one_way_us), str(gbits), str(loss_ppm))
        self.names = [f"headrace-{end}-{os.getpid()}" for end in ("client", "server")]
        self.client, self.server = (["ip", "netns", "exec", name] for name in self.names)
        self.link: subprocess.Popen[str] | None = None

    def __enter__(self) -> Wan:
        self.folder = tempfile.TemporaryDirectory(prefix="headrace-wan-")
        try:
            for name in self.names:
                must("ip", "netns", "add", name)
            self.start_link()
            for name, own, other in zip(self.names, (CLIENT, SERVER), (SERVER, CLIENT)):
                self.set_up(name, own, other)
        except Exception:
            self.down()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.down()

    def start_link(self) -> None:
        program = f"{self.folder.name}/wanlink"
        must(*os.environ.get("CC", "cc").split(), "-O2", "-D_GNU_SOURCE", "-pthread", "-o", program, str(SOURCE))
        command = [program, *self.names, INTERFACE, *self.numbers]
        self.link = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self.link.stdout
        if (said := self.link.stdout.readline().strip()) != "ready":
            raise RuntimeError(f"wanlink: {said}")

    def set_up(self, name: str, own: str, other: str) -> None:
        """`own` is this end's address and the way to `other`; lo has none, or both would be reached through it."""
        must("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", name, "route", "del", "local", "127.0.0.0/8", "dev", "lo", "table", "local")
        run("ip", "-n", name, "addr", "del", "127.0.0.1/8", "dev", "lo")
        run("ip", "-n", name, "route", "del", "local", "127.0.0.0/8", "dev", "lo", "table", "local")
        routed = [
            f"net.ipv4.conf.{i}.{what}" for i in ("all", INTERFACE) for what in ("route_localnet=1", "rp_filter=0")
        ]
        must("ip", "netns", "exec", name, "sysctl", "-qw", *routed, *WINDOWS)
        run(
            "ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1"
        )  # nothing is learnt between runs
        must("ip", "-n", name, "link", "set", INTERFACE, "mtu", "1500", "txqueuelen", "10000", "up")
        must("ip", "-n", name, "addr", "add", own, "peer", f"{other}/32", "dev", INTERFACE)
        # Where bbr is the default it paces a short answer over more than a round trip; most object stores look like cubic.
        # The sysctl is refused inside a namespace, the attribute of a route is not.
        must("ip", "-n", name, "route", "replace", other, "dev", INTERFACE, "src", own, "congctl", "cubic")

    def down(self) -> None:
        if self.link:
            self.link.terminate()
            self.link.wait(10)
        for name in self.names:
            remove(name)
        self.folder.cleanup()
