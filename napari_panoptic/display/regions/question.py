"""The base of the questions about a region, and what their tables have in common.

Such a question is a frozen dataclass, whose fields made by `option` are its inputs. Its faces are
generic: the panel with marks and selection in the image, a section of a report, and the cell of a
notebook.
"""

from __future__ import annotations

import pkgutil
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.display import slide_texts
from napari_panoptic.display.styles import CAUSE_MEANINGS, STATUS_MEANINGS
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.questions.answer import Answer, AnswerTable
from napari_panoptic.questions.question import AnyQuestion, kind_in
from napari_panoptic.tables.columns import (
    CellContent,
    TableColumn,
    TableSpec,
    number,
)
from napari_panoptic.values.vocabulary import Cause, Side, Status

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Here:
    """A region, and the teams evaluated in it; nothing in it changes any more."""

    #: Name of the region; empty for arrays.
    region: str
    #: The team that is looked at.
    team: str
    #: Team -> its evaluation, of one annotation and under the same settings. All teams that are
    #: compared, or only the one that is looked at.
    evaluations: Mapping[str, Evaluation]

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation of the team."""
        return self.evaluations[self.team]

    def objects(self, rows: Mapping[Side, Iterable[int]]) -> FailureSet:
        """Return objects of the team, given by their rows in the outcomes."""
        ids = {side: self.evaluation.outcomes.side(side).ids for side in rows}
        return self.named((self.team, side, ids[side][row]) for side in rows for row in rows[side])

    def named(self, objects: Iterable[tuple[str, Side, int]]) -> FailureSet:
        """Return objects, given by team, side and id."""
        names = (FailureName(team, self.region, side, int(id_)) for team, side, id_ in objects)
        return FailureSet("", frozenset(names))

    def table(self, spec: TableSpec, frame: pd.DataFrame, **more: Any) -> AnswerTable:
        """Return a table with an object of the team in each row, named by side and id."""
        sides, ids = frame["side"].tolist(), frame["id"].tolist()
        more = {"has_others": True, "is_of_objects": True, **more}
        return AnswerTable(
            spec, frame, lambda row: self.named([(self.team, Side(sides[row]), ids[row])]), **more
        )


@dataclass(frozen=True, kw_only=True)
class RegionQuestion(AnyQuestion):
    """What is asked about a team in a region, or about all its teams."""

    hint = "Nothing to show. Open a cohort."
    marks_name: ClassVar[str] = "listed objects"
    """Name of the layer that marks the objects of a panel; empty if none are marked."""
    on_slide: ClassVar[str] = slide_texts.REGION
    """Shown on a whole slide, about which nothing is asked."""
    is_about_all_teams: ClassVar[bool] = False
    """Whether the teams are compared, and not one of them looked at."""

    @abstractmethod
    def answered(self, here: Here) -> Answer:
        """Return the answer; called in threads.

        Raises
        ------
        UnansweredError
            If there is none, with a sentence on what to do.
        """


@cache
def region_questions() -> Mapping[str, type[RegionQuestion]]:
    """Return name -> question about a region: those of the modules in this folder."""
    from napari_panoptic.display import regions

    names = (module.name for module in pkgutil.iter_modules(regions.__path__))
    return {
        name: kind_in(f"{regions.__name__}.{name}", RegionQuestion)  # type: ignore[type-abstract]
        for name in names
        if name != "question"
    }


def region_question(name: str) -> type[RegionQuestion]:
    """Return the question of a name; a SettingsError if there is none."""
    if name not in region_questions():
        raise SettingsError(f"there is no question '{name}' about a region")
    return region_questions()[name]


def share(key: str, title: str, about: str) -> TableColumn:
    """Return a column of shares, in percent."""
    return number(key, title, lambda value: f"{100 * value:.0f} %", about)


def outcome(which: str, title: str, about: str) -> TableColumn:
    """Return a column of statuses in their colours, with the causes as tooltips.

    Its keys are ``status`` and ``cause``, followed by the text of `which`.
    """

    def cell(row: Mapping[Any, Any]) -> CellContent:
        status, cause = Status(row[f"status{which}"]), row[f"cause{which}"]
        meaning = CAUSE_MEANINGS[Cause(cause)] if cause else STATUS_MEANINGS[status]
        return CellContent(str(status), status=status, about=meaning)

    return TableColumn(title, cell, (f"status{which}", f"cause{which}"), about)
