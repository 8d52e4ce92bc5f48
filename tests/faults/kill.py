"""Programs killed at any moment: nothing half-written, nothing lost, and the same end.

    python -m tests.faults.kill --kills 200

Each of `evaluate`, `report`, the review, and the saving of edited objects in every format is
started and killed as often: half of the times at a moment of chance, the other half at its own
dealings with files in turn, which are opening, the middle of a write, bringing to the disk,
renaming, removing, and each statement of SQL. Each starts on what the one before has left, and
after each kill everything that lies there is looked at.

Children are forked from a process that has everything imported and compiled, so that a kill costs
no more than the work itself.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import io
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from napari_panoptic.cli.main import main as command
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.saving import writable_forms, write_objects
from napari_panoptic.report.plots import embed
from napari_panoptic.review.identity import Fingerprint, Subject
from napari_panoptic.review.plan.design import draw, extend
from napari_panoptic.review.plan.units import ItemKind, population
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.values.cohort import MONUSAC_CLASSES
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.vocabulary import Side, Verdict
from tests.support.paths import contents
from tests.support.small_cohort import write_cohort, write_first_regions

Tell = Callable[[int], None]
"""Takes the number of what somebody was told to be saved."""

ENDINGS = tuple(form.endings[0] for form in writable_forms())
N_VERSIONS, N_SAVES = 5, 12
OUTPUT = "out"


class Victim:
    """Something that is killed: `work` in a child, all else in the process that kills it."""

    name = ""

    def work(self, tell: Tell) -> None:
        """Do all of it."""
        raise NotImplementedError

    def look(self, told: list[int], *, is_done: bool) -> None:
        """Fail where what lies there is not as it must be."""
        raise NotImplementedError


class Evaluating(Victim):
    """`evaluate` or `report`: what has its name is whole, and the same whenever it ends."""

    def __init__(self, folder: Path, cohort: Path, name: str) -> None:
        self.name = name
        self._cohort, self._folder = cohort, folder / name
        self._folder.mkdir()
        self._wanted = self._of(self._folder / "whole")
        self.n_ended = 0

    def _of(self, output: Path) -> dict[str, bytes]:
        output.mkdir()
        self._run(output)
        return contents(output)

    def _run(self, output: Path) -> None:
        target = output if self.name == "evaluate" else output / "report.html"
        options = ["--jobs", "2", "--scheduler", "threads"]
        status = command([self.name, str(self._cohort), "--output", str(target), *options])
        assert status == 0, f"{self.name} ended with {status}"

    def work(self, tell: Tell) -> None:  # noqa: ARG002 - nothing is told to be saved but the end
        output = self._folder / OUTPUT
        output.mkdir(exist_ok=True)
        self._run(output)

    def look(self, told: list[int], *, is_done: bool) -> None:  # noqa: ARG002
        output = self._folder / OUTPUT
        if not output.exists():
            return
        found = contents(output)
        visible = {name: data for name, data in found.items() if not name.startswith(".")}
        for name, data in visible.items():
            assert data == self._wanted.get(name), f"{name} is another one than that of a whole run"
        if is_done:
            assert found == self._wanted, f"left behind: {sorted(set(found) - set(self._wanted))}"
            self.n_ended += 1
            shutil.rmtree(output)


class Saving(Victim):
    """Edited objects, again and again under one name: what was told to be saved is there."""

    def __init__(self, folder: Path, ending: str) -> None:
        self.name = f"save {ending}"
        self._path = folder / f"saved{ending}" / f"mine{ending}"
        self._path.parent.mkdir()
        self._versions = []
        for number in range(N_VERSIONS):
            draft = folder / f"draft-{number}{ending}"
            draft.mkdir()
            write_objects(draft / self._path.name, version(number))
            self._versions.append(contents(draft))
        self._saved = -1  # the last one of which somebody was told

    def work(self, tell: Tell) -> None:
        for number in range(self._saved + 1, self._saved + N_SAVES):
            write_objects(self._path, version(number % N_VERSIONS))
            tell(number)

    def look(self, told: list[int], *, is_done: bool) -> None:  # noqa: ARG002
        self._saved = max([self._saved, *told])
        found = self._there()
        if self._saved < 0 and not found:
            return
        fitting = [n for n in (self._saved, self._saved + 1) if n >= 0]
        assert any(found == self._versions[n % N_VERSIONS] for n in fitting), (
            f"version {self._saved} was saved, and {sorted(found)} are of no one version"
        )

    def _there(self) -> dict[str, bytes]:
        """Give what was saved; of files that belong together those before take precedence."""
        found = {n: d for n, d in contents(self._path.parent).items() if not n.startswith(".")}
        before = f"{self._path.name}.before/"
        aside = {n.removeprefix(before): d for n, d in found.items() if n.startswith(before)}
        names = {name.split("/")[0] for name in aside}
        beside = {n: d for n, d in found.items() if not n.startswith(before)}
        return {n: d for n, d in beside.items() if n.split("/")[0] not in names} | aside


class Reviewing(Victim):
    """Verdicts: each that was told to be saved is in the file, which is never damaged."""

    name = "review"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "review.sqlite"
        self._told: set[int] = set()
        self._kills = 0

    def work(self, tell: Tell) -> None:
        first = 1000 * self._kills
        with ReviewStore(self._path, reviewer="Ada") as store:
            for number in range(first, first + 30):
                place = Fingerprint("Lymphocyte", 20.0 * number, 10.0, 80)
                subject = Subject(
                    team="T", region="R", side=Side.REFERENCE, object_id=number, fingerprint=place
                )
                store.give(subject, Verdict.CANNOT_TELL, note="n" * (number % 700))
                tell(number)

    def look(self, told: list[int], *, is_done: bool) -> None:  # noqa: ARG002
        self._kills += 1
        self._told.update(told)
        if not self._path.exists():
            assert not self._told
            return
        with closing(sqlite3.connect(self._path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        with ReviewStore(self._path, reviewer="Ada") as store:
            assert store.notices == ()
            saved = {record.object_id for record in store.verdicts()}
        assert self._told <= saved, f"lost: {sorted(self._told - saved)}"
        # Killed between the saving and the telling: at most once each time.
        assert len(saved - self._told) <= self._kills


class Planning(Victim):
    """A planned review: it continues at the item after the last one that was told to be saved."""

    name = "plan"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "plan.sqlite"
        units = population(
            open_cohort(write_cohort(folder / "planned")), Reading(teams=("alpha", "beta"))
        ).units
        self._plans = [draw(units, 30, 1)]
        for n_items in (60, 90):
            self._plans.append(extend(self._plans[-1], units, n_items))
        self._told = 0

    def work(self, tell: Tell) -> None:
        with ReviewStore(self._path, reviewer="Ada") as review:
            if review.plan.stored() is None:
                review.plan.save(self._plans[0])
            for _ in range(12):
                item = review.plan.next_item()
                if item is None:
                    stored = review.plan.stored()
                    assert stored is not None
                    larger = [plan for plan in self._plans if len(plan) > len(stored.plan)]
                    if not larger:
                        return
                    review.plan.extend(larger[0])
                    continue
                verdict, count = self._verdict(item)
                review.plan.answer(item, verdict, count=count)
                tell(item)

    def _verdict(self, item: int) -> tuple[Verdict, int | None]:
        is_tile = bool(self._plans[-1].units.is_kind(ItemKind.BACKGROUND)[item - 1])
        return list(Verdict)[item % 3], item % 5 if is_tile else None

    def look(self, told: list[int], *, is_done: bool) -> None:  # noqa: ARG002
        self._told = max([self._told, *told])
        if not self._path.exists():
            assert not self._told
            return
        with ReviewStore(self._path, reviewer="Ada") as review:
            assert review.notices == ()
            stored, answers = review.plan.stored(), review.plan.answers()
        if stored is None:
            assert not self._told
            return
        (whole,) = [plan for plan in self._plans if len(plan) == len(stored.plan)]
        assert stored.plan.units.keys == whole.units.keys
        assert stored.plan.stratum == whole.stratum
        assert stored.plan.probability.tolist() == whole.probability.tolist()
        assert [a.item for a in answers] == list(range(1, len(answers) + 1))
        assert self._told <= len(answers) <= self._told + 1
        assert [(a.verdict, a.count) for a in answers] == [self._verdict(a.item) for a in answers]
        self._told = len(answers)
        if self._told == len(self._plans[-1]):  # begin again
            self._path.unlink()
            self._told = 0


def version(number: int) -> Objects:
    """Give objects to be saved: the same ids with other pixels and classes in each version."""
    index = np.zeros((60, 60), np.int32)
    for row in range(6):
        index[10 * row + 1 : 10 * row + 8, number + 2 : 40 + number] = row + 1
    ids = np.arange(1, 7)
    labels = LabelImage(
        index=index,
        ids=ids,
        class_index=((ids + number) % 4 + 1).astype(np.int16),
        original_ids=ids,
        class_names=MONUSAC_CLASSES.names,
    )
    ambiguous = np.zeros(index.shape, bool)
    ambiguous[40:50, 45 + number : 55] = True
    return Objects(labels, Side.REFERENCE, "R_1", "", ambiguous, MONUSAC_CLASSES, 0.25)


# --- killing ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """What became of a child."""

    is_killed: bool
    told: list[int]
    seconds: float
    n_dealings: int


class Dealings:
    """Counts, in a child, what it does with files, and kills it at one of them.

    Parameters
    ----------
    last
        At which it is killed; 0 for none.
    folder
        Dealings elsewhere, such as with caches, do not count.
    """

    def __init__(self, last: int, folder: Path) -> None:
        self._last, self._folder, self.count = last, str(folder), 0

    def note(self, before: Callable[[], object] = lambda: None) -> None:
        """Count one; where it is the last, do something and be killed."""
        self.count += 1
        if self.count == self._last:
            before()
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)

    def watch(self) -> None:
        """Listen from now on; there is no way back."""
        sys.addaudithook(self._on_event)
        fsync, opened, connect = os.fsync, io.open, sqlite3.connect

        def noted_fsync(file: int) -> None:
            self.note()
            fsync(file)

        def noted_open(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if set(mode) & set("wax+") and not isinstance(file, int) and self._is_mine(file):
                return self._open(file, mode, *arguments, **options)
            return opened(file, mode, *arguments, **options)

        def noted_connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
            connection = connect(*arguments, **options)
            connection.set_trace_callback(lambda _statement: self.note())
            return connection

        os.fsync, sqlite3.connect = noted_fsync, noted_connect
        io.open = builtins.open = noted_open

    def _is_mine(self, path: Any) -> bool:
        return os.fspath(path).startswith(self._folder)

    def _on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        is_one = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir")
        if is_one and isinstance(arguments[0], (str, Path)) and self._is_mine(arguments[0]):
            self.note()

    def _open(self, file: Any, mode: str, *arguments: Any, **options: Any) -> Any:
        """Open a file that is cut off where its writer is killed in the middle of a write."""
        self.note()
        dealings = self

        class Raw(io.FileIO):
            def write(self, data: Any) -> int:
                half = bytes(data)[: len(bytes(data)) // 2]
                dealings.note(lambda: io.FileIO.write(self, half))
                return super().write(data)

        letters = mode.replace("b", "").replace("t", "")
        raw = Raw(os.fspath(file), letters)
        kind = io.BufferedRandom if "+" in mode else io.BufferedWriter
        if "b" in mode:
            return kind(raw)
        text = {k: v for k, v in options.items() if k in ("encoding", "errors", "newline")}
        names = ("encoding", "errors", "newline")
        text |= dict(zip(names, arguments[1:], strict=False))
        return io.TextIOWrapper(kind(raw), **text)


def killed(victim: Victim, folder: Path, *, at: int = 0, after_s: float | None = None) -> Ended:
    """Let a child work, and kill it at one of its dealings with files or after some time."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = 1
        try:
            # Its own lock: processes share tqdm's, and one that is killed never releases it.
            tqdm.set_lock(threading.RLock())
            # What a terminal would show is of no interest 200 times over.
            quiet = os.open(os.devnull, os.O_WRONLY)
            log = os.open(str(folder / "said.txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(quiet, 1)
            os.dup2(log, 2)
            dealings = Dealings(at, folder)
            dealings.watch()
            victim.work(lambda number: os.write(writer, b"%d\n" % number) and None)
            os.write(writer, b"-%d\n" % dealings.count)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    began = time.perf_counter()
    if after_s is not None:
        with contextlib.suppress(OSError):
            time.sleep(after_s)
            os.kill(child, signal.SIGKILL)
    with os.fdopen(reader, encoding="ascii") as told:
        numbers = [int(line) for line in told.read().split("\n")[:-1]]
    _, status = os.waitpid(child, 0)
    is_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert is_killed or os.waitstatus_to_exitcode(status) == 0, (folder / "said.txt").read_text()
    count = next((-number for number in numbers if number < 0), 0)
    told_saved = [number for number in numbers if number >= 0]
    return Ended(is_killed, told_saved, time.perf_counter() - began, count)


def kill_often(victim: Victim, folder: Path, kills: int, *, seed: int) -> str:
    """Kill something as often, look at what is left each time, and let it end; says what was."""
    rng = random.Random(seed)  # noqa: S311
    began = time.perf_counter()
    whole = killed(victim, folder)
    victim.look(whole.told, is_done=True)
    n_killed = n_done = 0
    moments = _moments(rng, whole.n_dealings, kills)
    while n_killed < kills:
        at = next(moments)
        if at:
            ended = killed(victim, folder, at=at)
        else:
            ended = killed(victim, folder, after_s=rng.uniform(0, whole.seconds))
        n_killed += ended.is_killed
        n_done += not ended.is_killed
        victim.look(ended.told, is_done=not ended.is_killed)
    last = killed(victim, folder)
    assert not last.is_killed
    victim.look(last.told, is_done=True)
    return (
        f"{victim.name}: {n_killed} kills, {n_done} ended before theirs, "
        f"{whole.n_dealings} dealings with files in a whole run of {whole.seconds:.2f} s; "
        f"{time.perf_counter() - began:.0f} s in all"
    )


def _moments(rng: random.Random, n_dealings: int, kills: int) -> Iterator[int]:
    """Give, in turn, 0 for a moment of chance, and the number of a dealing with files."""
    step = max(1, 2 * n_dealings // kills)
    at = rng.randrange(step)
    while True:
        yield 0
        yield at % n_dealings + 1
        at += step


def without_plots() -> None:
    """Let reports draw nothing, which takes most of their time and has no dealings with files."""
    embed.svg_text = lambda _plot, **_options: "<svg></svg>"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--regions", type=int, default=3, help="of the cohort")
    parser.add_argument("--only", default="", help="such as evaluate, or save")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    without_plots()
    with tempfile.TemporaryDirectory(prefix="kill-") as name:
        folder = Path(name)
        cohort = write_first_regions(folder, options.regions)
        kinds: dict[str, Callable[[], Victim]] = {
            "evaluate": lambda: Evaluating(folder, cohort, "evaluate"),
            "report": lambda: Evaluating(folder, cohort, "report"),
            "review": lambda: Reviewing(folder),
            "plan": lambda: Planning(folder),
            **{
                f"save {ending}": lambda ending=ending: Saving(folder, ending)  # type: ignore[misc]
                for ending in ENDINGS
            },
        }
        for kind, make in kinds.items():
            if kind.startswith(options.only):
                with contextlib.redirect_stdout(io.StringIO()):
                    victim = make()
                said = kill_often(victim, folder, options.kills, seed=options.seed)
                print(said, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
