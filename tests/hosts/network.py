"""Hosts with separate addresses: network namespaces on one switch, which is a namespace as well.

Nothing exists outside the namespaces: no address, no route, no interface. The end of the block
kills their processes and removes them all.

Where namespaces are not permitted, hosts are loopback addresses of this machine. Then stopping a
host's processes cuts it off.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import signal
import subprocess
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

CLONE_NEWNET = 0x40000000


class NotPermitted(Exception):
    """Raised if network namespaces cannot be created here."""


@dataclass
class Host:
    """A host and its processes."""

    name: str
    address: str
    namespace: str  #: empty: a loopback address of this machine
    #: A folder that is replaced by an empty one on this host; only with namespaces.
    hidden: Path | None = None
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @contextmanager
    def running(
        self, command: list[str], log: Path, env: Mapping[str, str], cwd: Path | None = None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run a process on this host, under its host name; kill it at the end of the block."""
        with log.open("ab") as out:
            process = subprocess.Popen(
                [*self.enter, *command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        self.processes.append(process)
        try:
            yield process
        finally:
            self.processes.remove(process)
            end_group(process)

    @property
    def enter(self) -> list[str]:
        """Return the prefix of a command that runs here, under the host's name."""
        if not self.namespace:
            return []
        words = ["ip", "netns", "exec", self.namespace, "unshare", "--uts", "--mount", "sh", "-c"]
        hide = f"mount -t tmpfs none '{self.hidden}' && " if self.hidden else ""
        return [*words, f'{hide}hostname {self.name} && exec "$@"', "sh"]

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Move this thread, and the processes it starts, onto this host for the block."""
        if not self.namespace:
            yield
            return
        with open("/proc/thread-self/ns/net") as home:
            with open(f"/run/netns/{self.namespace}") as there:
                _enter(there.fileno())
            try:
                yield
            finally:
                _enter(home.fileno())

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every process started here, and to their children."""
        for process in self.processes:
            for one in _family(process.pid):
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.send_signal(number)


class Network:
    """Hosts by name, and the switch between them."""

    def __init__(self, hosts: Mapping[str, Host], switch: str) -> None:
        self.hosts = hosts
        self._switch = switch
        self._cut: set[str] = set()

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    def cut(self, name: str) -> None:
        """Cut a host off: packets are lost without a notice to either side."""
        self._cut.add(name)
        if self._switch:
            _ip("-n", self._switch, "link", "set", f"to-{name}", "down")
        else:
            self.hosts[name].signal(signal.SIGSTOP)

    def reconnect(self, name: str) -> None:
        if self._switch:
            _ip("-n", self._switch, "link", "set", f"to-{name}", "up")
        else:
            self.hosts[name].signal(signal.SIGCONT)
        self._cut.discard(name)

    def reconnect_all(self) -> None:
        for name in list(self._cut):
            self.reconnect(name)


@contextmanager
def running_network(addresses: Mapping[str, str]) -> Iterator[Network]:
    """Start hosts with these addresses (10.x.y.z), by name; all reach each other."""
    tag = f"ringhaul-{secrets.token_hex(3)}"
    switch = f"{tag}-switch"
    hosts = {name: Host(name, address, f"{tag}-{name}") for name, address in addresses.items()}
    try:
        try:
            _make(switch, hosts)
        except NotPermitted as reason:
            warnings.warn(
                f"NETWORK NAMESPACES ARE NOT PERMITTED HERE ({reason}): hosts are processes on "
                "loopback, and no link is ever cut",
                stacklevel=2,
            )
            local = {n: Host(n, "127" + a.removeprefix("10"), "") for n, a in addresses.items()}
            yield Network(local, "")
        else:
            yield Network(hosts, switch)
    finally:
        for name in (*(host.namespace for host in hosts.values()), switch):
            _remove(name)


def _make(switch: str, hosts: Mapping[str, Host]) -> None:
    _ip("netns", "add", switch)
    _ip("-n", switch, "link", "add", "switch", "type", "bridge")
    _ip("-n", switch, "link", "set", "switch", "up")
    for host in hosts.values():
        _ip("netns", "add", host.namespace)
        at, port = ("-n", host.namespace), f"to-{host.name}"
        _ip(*at, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", switch)
        _ip("-n", switch, "link", "set", port, "master", "switch", "up")
        _ip(*at, "addr", "add", f"{host.address}/8", "dev", "eth0")
        _ip(*at, "link", "set", "eth0", "up")
        _ip(*at, "link", "set", "lo", "up")


def _ip(*words: str) -> str:
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True)
    except FileNotFoundError as error:
        raise NotPermitted("there is no command ip, of the package iproute2") from error
    if done.returncode:
        raise NotPermitted(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def _remove(name: str) -> None:
    """Kill the processes of a namespace, and remove it."""
    if not Path("/run/netns", name).exists():
        return
    deadline = time.monotonic() + 10
    while pids := {int(pid) for pid in _ip("netns", "pids", name).split()} - {os.getpid()}:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert time.monotonic() < deadline, f"processes {pids} do not end"
        time.sleep(0.05)
    _ip("netns", "del", name)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its descendants, stopped ones too."""
    family = _family(process.pid)
    for one in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    process.wait()
    psutil.wait_procs(family, 10)


def _family(pid: int) -> list[psutil.Process]:
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _enter(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
