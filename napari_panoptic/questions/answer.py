"""The answer to a question, which each face shows in its own way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.findings import Finding
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.tables.columns import TableSpec

if TYPE_CHECKING:
    import pandas as pd


class UnansweredError(PanopticError):
    """A question has no answer in a cohort or region.

    Parameters
    ----------
    message
        Why not.
    findings
        What was missing or unreadable.
    """

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(dict.fromkeys(findings))


@dataclass(frozen=True, eq=False)
class AnswerTable:
    """A table of an answer."""

    #: Its columns, and its CSV file; without a file name it is only shown.
    spec: TableSpec
    #: Its rows.
    frame: pd.DataFrame
    #: Returns the objects that a row is about; None if its rows are not about objects.
    objects: Callable[[int], FailureSet] | None = None
    #: Whether some of these objects are not failures.
    has_others: bool = False
    #: Returns a row as a sentence, for the terminal and lists; None if rows are shown as a table.
    sentence: Callable[[int], str] | None = None
    #: Returns more about a row, for its tooltip and the line below the table.
    tooltip: Callable[[int], str] | None = None
    #: Returns the title of the plot that is shown with a row.
    plot: Callable[[int], str] | None = None
    #: Whether each row is about one object, to which a click on it goes.
    is_of_objects: bool = False
    #: The number of rows that the terminal prints.
    printed: int = 20
    #: Its title in a menu, and its section of a page of its own; else the content of its rows.
    heading: str = ""
    #: Whether it is too long for pages.
    is_long: bool = False
    #: What is said in its place if it has no rows.
    empty: str = ""
    #: Whether it stays in sight above the table that is chosen.
    is_summary: bool = False
    #: Returns the objects that a row is made of, for the table below it; None if it has no parts.
    members: Callable[[int], AnswerTable] | None = None

    @property
    def title(self) -> str:
        """What it lists, in a few words."""
        return self.heading or self.spec.row

    @cached_property
    def row_of(self) -> Mapping[FailureName, int]:
        """Object -> the first row that is about it; empty if rows are not about objects."""
        if self.objects is None or not self.is_of_objects:
            return {}
        rows = reversed(range(len(self.frame)))
        return {name: row for row in rows for name in self.objects(row).names}

    @property
    def is_shown(self) -> bool:
        """Whether it is shown, as sentences or columns; the other tables are only written."""
        return self.sentence is not None or bool(self.spec.shown())

    def sentences(self, most: int | None = None) -> list[str]:
        """Return its first rows as sentences; empty if they are shown as a table."""
        if self.sentence is None:
            return []
        return [self.sentence(row) for row in range(len(self.frame))[:most]]


@dataclass(frozen=True)
class AnswerPlot:
    """A plot of an answer, drawn when it is shown."""

    #: The function of `napari_panoptic.report.plots` that draws it.
    name: str
    #: What it shows: the entry of a menu, and a caption.
    title: str
    caption: str
    #: The arguments of the function.
    arguments: tuple[Any, ...]
    #: Its keyword arguments.
    keywords: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    #: Whether pages show it; if not, only the window does.
    is_on_pages: bool = True


@dataclass(frozen=True)
class Reason:
    """Why an object failed, as far as an answer tells."""

    #: The reason in a sentence.
    sentence: str
    #: The figures behind it, how it was found, and further reasons.
    tooltip: str


@dataclass(frozen=True, eq=False)
class AnswerRecord:
    """The content of the JSON file of an answer, and what it was read from."""

    #: The entries, but for versions, warnings and the fingerprints of files.
    content: Mapping[str, Any]
    #: What was missing, unreadable or odd, each once.
    findings: tuple[Finding, ...]
    #: The teams whose files were read.
    teams: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Answer:
    """What was found in a cohort or region."""

    #: The result in a sentence.
    headline: str
    #: Further sentences: figures, and what to keep in mind.
    notes: tuple[str, ...] = ()
    #: The tables; those that are written come in the order of their files.
    tables: tuple[AnswerTable, ...] = ()
    #: The plots.
    plots: tuple[AnswerPlot, ...] = ()
    #: The JSON file; empty if there is none.
    record: AnswerRecord = AnswerRecord({}, (), ())
    #: The meaning of the figures of the headline, for its tooltip.
    about: str = ""
    #: Returns why an object failed, or None if the answer does not tell.
    reason: Callable[[FailureName], Reason | None] = lambda _name: None

    @property
    def files(self) -> dict[str, pd.DataFrame]:
        """Name of each CSV file -> its rows."""
        return {table.spec.file: table.frame for table in self.tables if table.spec.file}
