"""One reader under libFuzzer: run by `fuzz.__main__` in a process of its own, which may die.

``python -m fuzz.guided READER WAY RUNS SEED FOLDER``: a way is ``bytes``, where inputs are
mutations of files, or ``documents``, where they say how a document is edited.
"""

from __future__ import annotations

import faulthandler
import importlib
import pkgutil
import signal
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import atheris

from fuzz.judge import Judge, Logbook, keep
from fuzz.targets import TARGETS

SECONDS_BEFORE_DEATH = 12
"""A call that takes more processor time is stuck in a library: the process ends."""
WAITED_SECONDS = 600
"""So does one that takes longer by the clock: it waits for what never comes."""
LIBRARIES = ("tifffile", "PIL", "tomllib", "csv", "json", "numpy.lib._format_impl")
"""Where the way through readers goes on, in Python that can be followed."""


def main(arguments: list[str]) -> None:
    """Run one reader."""
    name, way, runs, seed, place = arguments
    folder = Path(place)
    corpus = folder / "corpus" / f"{name}-{way}"
    corpus.mkdir(parents=True, exist_ok=True)
    target = TARGETS[name]
    # What seeds need is imported before any input is judged.
    seeds = target.all_seeds()
    if way == "bytes":
        for number, content in enumerate(seeds):
            (corpus / f"seed-{number}").write_bytes(content)
    judge = target.judge()
    for content in seeds:
        # Libraries are loaded by nobody's fault.
        judge.failure_of(content)
    record = _Recorder(judge, folder, name, way)
    call = record if way == "bytes" else lambda decisions: record(target.document(decisions))
    faulthandler.register(signal.SIGPROF, chain=True)
    _instrument()
    longest = 8192 if way == "bytes" else 200
    options = [
        f"-runs={runs}",
        f"-seed={seed}",
        f"-timeout={WAITED_SECONDS}",
        f"-max_len={longest}",
    ]
    options += ["-rss_limit_mb=0", "-verbosity=0", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], call)
    atheris.Fuzz()


class _Recorder:
    """Has inputs judged, counts them, and keeps those that fail."""

    def __init__(self, judge: Judge, folder: Path, name: str, way: str) -> None:
        self._judge = judge
        self._log = Logbook(folder / f"{name}-{way}.log")
        self._findings = folder / "findings" / name
        self._count = 0

    def __call__(self, data: bytes) -> None:
        self._log.note(self._count, data)
        self._count += 1
        signal.setitimer(signal.ITIMER_PROF, SECONDS_BEFORE_DEATH)
        failure = self._judge.failure_of(data)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if failure is not None:
            keep(self._findings, failure, data)
        self._log.note(self._count, data)


def _instrument() -> None:
    """Have libFuzzer told which branches of the readers are taken; kernels stay as they are."""
    import napari_panoptic

    names = [
        info.name for info in pkgutil.walk_packages(napari_panoptic.__path__, "napari_panoptic.")
    ]
    ours = [name for name in names if name in sys.modules]
    for name in (*ours, *(n for n in sys.modules if n.startswith(LIBRARIES))):
        _instrument_module(importlib.import_module(name))


def _instrument_module(module: ModuleType) -> None:
    for value in list(vars(module).values()):
        if getattr(value, "__module__", None) != module.__name__:
            continue
        functions = [value, *(vars(value).values() if isinstance(value, type) else ())]
        for function in functions:
            if isinstance(function, (staticmethod, classmethod)):
                function = function.__func__
            if isinstance(function, property):
                function = function.fget
            if isinstance(function, FunctionType):
                atheris.instrument_func(function)


if __name__ == "__main__":
    main(sys.argv[1:])
