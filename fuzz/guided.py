"""One reader under libFuzzer: run by `fuzz.__main__` in a process of its own, which may die.

``python -m fuzz.guided READER WAY RUNS SEED FOLDER``: a way is ``bytes``, where inputs are
mutations of files, or ``documents``, where they say how a document is edited.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import atheris

from fuzz.judge import Judge, Logbook, keep
from fuzz.targets import TARGETS

# A call that takes more processor time is stuck in a library, one that takes longer by the clock
# waits forever: the process ends.
SECONDS_BEFORE_DEATH, WAITED_SECONDS = 12, 600
# Libraries in Python, whose branches can be followed.
LIBRARIES = ("tifffile", "PIL", "tomllib", "csv", "json", "numpy.lib._format_impl")


def main(arguments: list[str]) -> None:
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
        # Loads libraries, which is no fault of an input.
        judge.failure_of(content)
    record = _Recorder(judge, folder, name, way)
    call = record if way == "bytes" else lambda decisions: record(target.document(decisions))
    faulthandler.register(signal.SIGPROF, chain=True)
    _instrument()
    longest = 8192 if way == "bytes" else 200
    options = f"-runs={runs} -seed={seed} -timeout={WAITED_SECONDS} -max_len={longest}".split()
    options += ["-rss_limit_mb=0", "-verbosity=0", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], call)
    atheris.Fuzz()


class _Recorder:
    """Passes inputs to the judge, counts them, and keeps those that fail."""

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
    """Report to libFuzzer which branches of the readers are taken; kernels stay as they are."""
    followed = ("napari_panoptic.", *LIBRARIES)
    for name in [name for name in sys.modules if name.startswith(followed)]:
        _instrument_module(sys.modules[name])


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
