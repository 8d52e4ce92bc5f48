"""A process that runs contenders for `benchmarks.run`: how long they take, and how much memory.

``python -m benchmarks.worker MODULE`` reads one request per line (JSON) and answers each with
a line. It imports nothing but NumPy and the contenders' module, because peers that cannot be
installed beside each other have environments of their own. A request names a contender (a key
of ``MODULE.CONTENDERS``) and the .npy files that it is called with.
"""

import ctypes
import gc
import importlib
import json
import os
import re
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

Contender = Callable[..., Any]
LONGEST_BATCH_S = 0.02
MOST_CALLS = 30
FEW_CALLS = 5


@lru_cache(maxsize=16)
def _array(path: str) -> Any:
    return np.load(path)


def timed(call: Contender, arrays: list[Any]) -> float:
    """Give the median in ms of as many calls as fit into a moment, at least one."""
    times: list[float] = []
    while not times or (len(times) < MOST_CALLS and sum(times) < LONGEST_BATCH_S):
        start = time.perf_counter()
        call(*arrays)
        times.append(time.perf_counter() - start)
    return 1000 * median(times)


def processor_ms(call: Contender, arrays: list[Any]) -> float:
    """Give the processor time of a call in ms, over all threads: the least of a few.

    Unlike the time on the wall it does not count waiting while others work.
    """
    times: list[float] = []
    while not times or (len(times) < FEW_CALLS and sum(times) < LONGEST_BATCH_S):
        start = time.process_time()
        call(*arrays)
        times.append(time.process_time() - start)
    return 1000 * min(times)


def allocated_bytes(call: Contender, arrays: list[Any]) -> int:
    """Give the most memory that NumPy and Python have in use beyond the inputs in a second call.

    Nearly the same in every run (threads meet or do not); what compiled code allocates for
    itself is not in it.
    """
    call(*arrays)
    tracemalloc.start()
    try:
        call(*arrays)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def extra_bytes(call: Contender, arrays: list[Any]) -> int | None:
    """Measure in a forked process by how much a second call raises the most memory in use.

    A first call loads what is loaded once (libraries, compiled code). None where the system
    does not tell (it does on Linux).
    """
    if not Path("/proc/self/clear_refs").exists():
        return None
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            call(*arrays)
            os.write(sender, str(_raised_by(call, arrays)).encode())
        finally:
            os._exit(0)
    os.close(sender)
    with os.fdopen(receiver) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return int(text) if text else None


def _raised_by(call: Contender, arrays: list[Any]) -> int:
    gc.collect()
    # Give back what the first call left behind, or it would be used again unseen.
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from what is in use
    before = _status("VmRSS")
    result = call(*arrays)
    peak = _status("VmHWM")
    del result
    return max(0, peak - before)


def _status(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def answer(contenders: dict[str, Contender], request: dict[str, Any]) -> dict[str, Any]:
    """Do what a request asks for."""
    if request["what"] == "versions":
        return {"versions": {name: _version(name) for name in request["names"]}}
    call = contenders[request["contender"]]
    arrays = [_array(path) for path in request["arrays"]]
    if request["what"] == "memory":
        return {"bytes": extra_bytes(call, arrays)}
    if request["what"] == "allocated":
        return {"bytes": allocated_bytes(call, arrays)}
    if request["what"] == "processor":
        return {"ms": processor_ms(call, arrays)}
    if request["what"] == "result":
        np.save(request["path"], call(*arrays))
        return {}
    return {"ms": timed(call, arrays)}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def main() -> None:
    # Whatever a package prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    contenders: dict[str, Contender] = {}
    for line in sys.stdin:
        try:
            contenders = contenders or importlib.import_module(sys.argv[1]).CONTENDERS
            said = answer(contenders, json.loads(line))
        except Exception as error:  # noqa: BLE001 (a peer that fails is left out, and named)
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), file=answers, flush=True)


if __name__ == "__main__":
    main()
