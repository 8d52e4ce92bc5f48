"""What the commands share: printing, progress, and folders for their tables."""

from __future__ import annotations

import datetime
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from napari_panoptic.cli.printing import say, warn
from napari_panoptic.common.errors import PanopticError, SettingsError, checked_name
from napari_panoptic.common.findings import FINDING_TITLES, Finding, FindingKind
from napari_panoptic.common.progress import Progress
from napari_panoptic.common.text import visible
from napari_panoptic.io.cohorts.description import DESCRIPTION
from napari_panoptic.io.files.file_sets import finish_replacing
from napari_panoptic.io.files.locking import exclusive_lock
from napari_panoptic.io.formats.saving import check_not_in_cohort
from napari_panoptic.report.writing import (
    check_replaceable,
    check_writable,
    is_own_page,
    provenance,
    write_set,
)
from napari_panoptic.tables.columns import TableColumn, aligned, values
from napari_panoptic.values.cohort import Cohort

if TYPE_CHECKING:
    import pandas as pd
    from tqdm import tqdm

    from napari_panoptic.nuclei.regions.run import RegionDone

_LOCK = ".lock"
_SHOWN_FINDINGS = 20
_UNDEFINED = "\N{EN DASH}"
_IN_THE_WAY = (
    FindingKind.MISSING,
    FindingKind.UNREADABLE,
    FindingKind.CHANGED,
    FindingKind.OUTSIDE_FOLDER,
    FindingKind.BROKEN_PLUGIN,
)

_NO_DESCRIPTION = (
    f"single files have no {DESCRIPTION}: name classes with --classes; for other settings, copy "
    "the files under one name into folders, such as annotation/a.tif, models/NAME/a.tif and "
    "images/a.png, and run: napari-panoptic init FOLDER"
)


def report_findings(
    findings: Sequence[Finding],
    listed_in: str | None = "evaluation.json",
    *,
    are_files: bool = False,
) -> None:
    """Print blocking findings in full, the others as counts, and where the full list is.

    Parameters
    ----------
    findings
        All findings.
    listed_in
        The file with the full list; None if there is none.
    are_files
        Whether single files were read, in place of a cohort with a ``cohort.toml``.
    """
    in_the_way = [f for f in findings if f.kind in _IN_THE_WAY]
    for finding in in_the_way[:_SHOWN_FINDINGS]:
        warn(f"{finding.message}{_place(finding)}")
    handled = Counter(f.kind for f in findings if f.kind not in _IN_THE_WAY)
    rest = Counter(f.kind for f in in_the_way[_SHOWN_FINDINGS:])
    for kind, count in (rest + handled).items():
        example = next(f for f in reversed(findings) if f.kind is kind)
        number = f"{count} more, such as: " if kind in rest else f"found {count} times, such as: "
        if kind in handled and count == 1:
            number = ""
        warn(f"{FINDING_TITLES[kind]}: {number}{example.message}{_place(example)}")
    if are_files and any(DESCRIPTION in finding.message for finding in findings):
        warn(_NO_DESCRIPTION)
    if findings and listed_in:
        warn(f"all of them are listed in {listed_in}")


def _place(finding: Finding) -> str:
    """Describe the place of a finding, unless its message does."""
    parts = []
    if finding.path is not None and finding.path.name not in finding.message:
        parts.append(str(finding.path))
    for what, name in {"region": finding.region, "team": finding.team}.items():
        if name and name not in "".join([finding.message, *parts]):
            parts.append(f"{what} {name}")
    return f" ({', '.join(parts)})" if parts else ""


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table: the first column to the left, the others to the right."""
    for line in aligned(header, [list(map(cell, row)) for row in rows]):
        say(line)


def print_frame(columns: Sequence[TableColumn], frame: pd.DataFrame) -> None:
    """Print the values of a table under the headings of its columns."""
    print_table(*values(columns, frame.to_dict("records")))


def cell(value: object) -> str:
    """Return a number as text: fractions with four decimals, a dash if it is undefined."""
    if isinstance(value, float):
        return _UNDEFINED if math.isnan(value) else f"{value:.4f}"
    if isinstance(value, str | int):
        return str(value)
    import pandas as pd

    return _UNDEFINED if value is None or value is pd.NA else str(value)


def _bar(total: int, unit: str) -> tqdm[Any]:
    """Return a progress bar for a terminal; it is silent if stderr is a file."""
    from tqdm import tqdm

    return tqdm(total=total, unit=unit, disable=None)


def words(text: str, separator: str = ",") -> list[str]:
    """Split a text at commas, without repeated words."""
    return list(dict.fromkeys(word.strip() for word in text.split(separator) if word.strip()))


def chosen_teams(
    wanted: str | None, usual: Sequence[str], name_of: Callable[[str], str]
) -> tuple[str, ...]:
    """Return the teams to evaluate.

    Parameters
    ----------
    wanted
        Names separated by commas; None for the default.
    usual
        The default.
    name_of
        Returns the name of a team of the cohort, or raises.

    Raises
    ------
    SettingsError
        If no name is given, or one that the cohort does not have.
    """
    if wanted is None:
        return tuple(usual)
    names = words(wanted)
    if not names:
        raise SettingsError(f"--teams: expected names separated by commas, found '{wanted}'")
    return tuple(checked_name("--teams", name, name_of) for name in names)


def check_report(path: Path, cohort: Path) -> None:
    """Check before long work that a report can be written, and that browsers will open it.

    Parameters
    ----------
    path
        The file to write.
    cohort
        The folder of the cohort, in which only reports of this program are replaced.

    Raises
    ------
    SettingsError
        If the name does not end as those of HTML files do.
    PanopticError
        If nothing can be written there, or another file is in the way.
    """
    if path.suffix.casefold() not in (".html", ".htm") and not path.is_dir():
        raise SettingsError(
            f"--output: a report is an HTML file, whose name ends in .html; found '{path}', give "
            f"'{path.with_suffix('.html') if path.name else 'report.html'}'"
        )
    check_writable(path)
    if not is_own_page(path):
        check_not_in_cohort([path], cohort)


def report_date(*, is_wanted: bool) -> str:
    """Return today's date for a report; empty if not wanted."""
    return datetime.date.today().isoformat() if is_wanted else ""


@dataclass(frozen=True)
class TableFolder:
    """The locked output folder of a command, and its files, the record last."""

    folder: Path
    names: Sequence[str]

    def write(
        self,
        tables: Mapping[str, pd.DataFrame],
        record: Mapping[str, Any],
        findings: Sequence[Finding],
        inputs: Mapping[str, str],
        *,
        add: Callable[[Path], object] = lambda _draft: None,
    ) -> None:
        """Print the findings, and write tables and record, which lists them; see `write_set`."""
        report_findings(findings, self.names[-1])
        content = {**record, **provenance(findings, inputs)}
        write_set(self.folder, tables, (self.names[-1], content), add=add)


@contextmanager
def tables_in(folder: Path, names: Sequence[str]) -> Iterator[TableFolder]:
    """Prepare and lock the folder for a set of tables; leave no new folder empty.

    Completes a set that a killed program was putting in place.

    Parameters
    ----------
    folder
        The folder for the tables.
    names
        Their files, the record last.

    Raises
    ------
    PanopticError
        If the folder cannot be created or written to, or holds other files of these names.
    """
    if folder.exists() and not folder.is_dir():
        raise PanopticError(
            "the tables cannot be written: expected a folder, found a file; choose another "
            "--output",
            path=folder,
        )
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(folder / _LOCK, "an evaluation", "choose another --output"):
            finish_replacing(folder, names[-1])
            check_replaceable(folder, names)
            yield TableFolder(folder, names)
    except OSError as error:
        raise PanopticError(
            f"the tables cannot be written: {error.strerror}; choose another --output", path=folder
        ) from error
    finally:
        if is_new and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


@contextmanager
def share_bar() -> Iterator[Progress]:
    """Show the share that is done of work on a whole cohort."""
    with _bar(100, "%") as bar:

        def report(share: float, doing: str) -> None:
            bar.update(max(0, int(100 * share) - bar.n))
            bar.set_postfix_str(visible(doing))

        def remark(text: str) -> None:
            bar.write(visible(f"napari-panoptic: {text}"), file=sys.stderr)

        yield Progress(report=report, remark=remark)


class RegionProgress:
    """A progress bar, and a note on regions reused from an interrupted run."""

    def __init__(self, cohort: Cohort) -> None:
        self._n_regions = len(cohort.regions)
        self._taken_over = 0
        self._bar = _bar(self._n_regions, "region")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._bar.close()
        if error is not None or not self._taken_over:
            return
        warn(
            f"{self._taken_over} of {self._n_regions} regions were done by an interrupted run and "
            f"have not changed since"
        )

    def on_result(self, done: RegionDone) -> None:
        """Count a finished region."""
        if not done.is_again:
            self._bar.update()
            self._taken_over += done.is_taken_over
        if done.remark:
            self._bar.write(visible(f"napari-panoptic: {done.remark}"), file=sys.stderr)

    def on_progress(self, region: str, share: float, saying: str) -> None:
        """Show the progress within a large region."""
        self._bar.set_postfix_str(visible(f"{region}: {saying}, {share:.0%}"))


def report_stopped() -> int:
    """Print that a command was interrupted, and return its exit status."""
    warn("stopped; run the same command again to resume")
    return 130


def report_nothing(cohort: Cohort, names: Sequence[str], done: str = "evaluated") -> int:
    """Print why nothing of a cohort could be done, and return the exit status."""
    from napari_panoptic.questions.question import why_nothing

    warn(f"nothing could be {done} in {cohort.root}: {why_nothing(cohort, names)}")
    return 1
