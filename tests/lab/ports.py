"""Ports that stay ours: a server that was killed must find its port free when it starts again."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .errors import LabError

LOWEST = 15000
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def _registry() -> Path:
    folder = Path(tempfile.gettempdir()) / f"status-tool-lab-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    return folder


def _highest() -> int:
    """The end of our range: below the ephemeral ports, which any outgoing connection may sit on."""
    try:
        return max(LOWEST + 1000, int(EPHEMERAL_RANGE.read_text().split()[0]) - 1)
    except (OSError, ValueError, IndexError):
        return 32767


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the servers do; without it, a port would count as taken for a minute after its last use.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def accepts(port: int) -> bool:
    """Whether somebody listens there."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


class Drawn:
    """The ports of one cluster in the order in which it took them, so that another process can take the same ones."""

    def __init__(self, ports: Ports, known: Sequence[int] = ()) -> None:
        """`known` are handed out first: they are taken already."""
        self.taken: list[int] = []
        self._ports = ports
        self._known = list(known)

    def take(self) -> int:
        """The next one."""
        self.taken.append(self._known.pop(0) if self._known else self._ports.take())
        return self.taken[-1]


class Ports:
    """Reserves ports across labs by locked files. The locks go with the process, however it ends."""

    def __init__(self) -> None:
        self._locks: dict[int, int] = {}

    def take(self) -> int:
        """A port that nothing listens on and that no other lab is given until `release`."""
        for _ in range(1000):
            port = random.randrange(LOWEST, _highest())
            if self._reserve(port):
                return port
        raise LabError("no free port found")

    def _reserve(self, port: int) -> bool:
        lock = os.open(_registry() / str(port), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        if not _is_free(port):
            os.close(lock)
            return False
        self._locks[port] = lock
        return True

    def release(self) -> None:
        """Give all ports back."""
        for lock in self._locks.values():
            os.close(lock)
        self._locks.clear()
