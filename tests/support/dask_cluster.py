"""A Dask cluster on this machine, for tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.paths import REPOSITORY

_IN_ONE = """
import sys
from distributed import LocalCluster
options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
with LocalCluster(processes=False, protocol="tcp", host="127.0.0.1", **options) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@contextmanager
def cluster_in_one_process(folder: Path) -> Iterator[str]:
    """Run a scheduler and two workers in one other process, and yield their address.

    It starts in a third of the time of a `Cluster`, of which a test can kill parts.
    """
    with (
        (folder / "cluster.log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-c", _IN_ONE],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        ) as process,
    ):
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            assert address, (folder / "cluster.log").read_text("utf-8")
            yield address
        finally:
            process.kill()


class Cluster:
    """A scheduler and two workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        port = self.address.rpartition(":")[2]
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"
        )
        self.workers = [self.add_worker() for _ in range(2)]

    def _start(self, role: str, *options: str) -> subprocess.Popen[bytes]:
        log = (self._folder / f"{role} {len(self._processes)}.log").open("wb")
        with log:
            process = subprocess.Popen(
                [sys.executable, "-m", "distributed.cli.dask_" + role, *options],
                cwd=self._folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            )
        self._processes.append(process)
        return process

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker without a nanny, so that killing it is the end of it."""
        return self._start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"
        )

    def wait_for_workers(self, number: int) -> None:
        from distributed import Client

        with Client(self.address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(number, timeout=60)

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait(30)
