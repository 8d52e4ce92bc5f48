"""The workers of a Dask cluster as an executor, with errors that say what to do."""

from __future__ import annotations

import logging
import time
from concurrent.futures import CancelledError, Executor
from contextlib import ExitStack
from typing import Any

from napari_panoptic import __version__
from napari_panoptic.common.errors import PanopticError, SettingsError
from napari_panoptic.common.text import similar

_EXPECTED = "threads, processes, or what 'dask scheduler' prints, such as tcp://10.0.0.5:8786"
_CONNECT_S = 10.0
_WITHOUT_WORKERS_S = 60.0
_COUNT_EVERY_S = 1.0


class Cluster:
    """A connection to a Dask scheduler.

    Parameters
    ----------
    address
        The scheduler's address, such as ``tcp://10.0.0.5:8786``.

    Raises
    ------
    PanopticError
        If distributed is not installed, no scheduler answers, or there are no
        workers; a SettingsError for a malformed address.
    """

    def __init__(self, address: str) -> None:
        self._distributed = _distributed()
        _check_address(address)
        self._address = address
        with ExitStack() as undo:
            # A lost connection is an error already; these would add tracebacks of theirs.
            for name in ("distributed.batched", "distributed.client", "tornado.application"):
                logger = logging.getLogger(name)
                undo.callback(logger.setLevel, logger.level)
                logger.setLevel(logging.CRITICAL)
            try:
                self._client = self._distributed.Client(
                    address, timeout=_CONNECT_S, set_as_default=False, name="napari-panoptic"
                )
            except (OSError, ValueError) as error:  # a time-out is an OSError
                raise PanopticError(
                    f"no Dask scheduler answers at '{address}' ({error}). Start one with 'dask "
                    f"scheduler' and pass the address that it prints, such as tcp://10.0.0.5:8786"
                ) from error
            undo.callback(self._client.close)
            self._n_threads = self._count_threads()
            if not self._n_threads:
                raise PanopticError(
                    f"the Dask scheduler at '{address}' has no workers: start some with "
                    f"'dask worker {address}'"
                )
            self._undo = undo.pop_all()
        self.executor: Executor = self._client.get_executor(pure=False)
        self._counted = self._alive = time.monotonic()

    @property
    def n_threads(self) -> int:
        """The number of threads of all workers, counted again every second: workers come and go."""
        if time.monotonic() > self._counted + _COUNT_EVERY_S:
            self._counted = time.monotonic()
            self._n_threads = self._count_threads()
        return self._n_threads

    def check(self) -> None:
        """Raise a PanopticError if the scheduler is gone, or has had no workers for a minute."""
        if self._client.status != "running":
            raise self._gone()
        if self.n_threads:
            self._alive = time.monotonic()
        elif time.monotonic() > self._alive + _WITHOUT_WORKERS_S:
            raise PanopticError(
                f"the Dask scheduler at '{self._address}' has lost all its workers. Finished "
                f"regions are kept: start new workers and run the same command again"
            )

    def explained(self, error: BaseException, region: str) -> BaseException:
        """Return a clear error for one that a region's task raised, or the same error."""
        import asyncio

        if isinstance(error, (CancelledError, asyncio.CancelledError, OSError)):
            return self._gone()
        if isinstance(error, self._distributed.KilledWorker):
            return PanopticError(
                "several workers died at this region, possibly out of memory. Finished regions "
                "are kept: run the same command again with larger workers",
                region=region,
            )
        if isinstance(error, ImportError):
            return PanopticError(
                f"the Dask workers cannot import what they need ({error}): install "
                f"napari-panoptic {__version__} on their machines"
            )
        return error

    def close(self) -> None:
        """Cancel all tasks and disconnect."""
        with self._undo:
            if self._client.status == "running":
                self.executor.shutdown(wait=False)

    def _count_threads(self) -> int:
        try:
            return sum(self._client.nthreads().values())
        except OSError:
            return 0

    def _gone(self) -> PanopticError:
        return PanopticError(
            f"the Dask scheduler at '{self._address}' does not answer any more. Finished regions "
            f"are kept: start it and run the same command again"
        )


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise PanopticError(
            "a Dask scheduler needs the package distributed, which is not installed: "
            "pip install 'napari-panoptic[dask]'"
        ) from error
    return distributed


def _check_address(address: str) -> None:
    """Raise a SettingsError for a malformed address, which a client would wait for."""
    from distributed.comm.addressing import parse_address, parse_host_port
    from distributed.comm.registry import get_backend

    try:
        scheme, place = parse_address(address)
        get_backend(scheme)
        if scheme != "inproc":  # in this very process, without a port
            parse_host_port(place)
    except ValueError as error:
        close = similar(address, ["threads", "processes"])
        hint = f"did you mean {' or '.join(close)}?" if close else f"expected {_EXPECTED}"
        raise SettingsError(f"scheduler: '{address}' is no address ({error}); {hint}") from error
