"""The base of the questions about a region, and what their tables have in common.

Such a question is a frozen dataclass, whose fields made by `option` are its inputs. Its faces are
generic: the panel with marks and selection in the image, a section of a report, and the cell of a
notebook.
"""

from __future__ import annotations

import pkgutil
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.display import slide_texts
from napari_panoptic.display.regions.here import Here
from napari_panoptic.display.styles import CAUSE_MEANINGS, STATUS_MEANINGS
from napari_panoptic.questions.answer import Answer
from napari_panoptic.questions.question import AnyQuestion, kind_in
from napari_panoptic.tables.columns import (
    CellContent,
    TableColumn,
    number,
)
from napari_panoptic.tables.figures import percent
from napari_panoptic.values.vocabulary import Cause, Status

if TYPE_CHECKING:
    pass


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
        if name not in ("here", "question")
    }


def region_question(name: str) -> type[RegionQuestion]:
    """Return the question of a name; a SettingsError if there is none."""
    if name not in region_questions():
        raise SettingsError(f"there is no question '{name}' about a region")
    return region_questions()[name]


def share(key: str, title: str, about: str) -> TableColumn:
    """Return a column of shares, in percent."""
    return number(key, title, percent, about)


def outcome(which: str, title: str, about: str) -> TableColumn:
    """Return a column of statuses in their colours, with the causes as tooltips.

    Its keys are ``status`` and ``cause``, followed by the text of `which`.
    """

    def cell(row: Mapping[Any, Any]) -> CellContent:
        status, cause = Status(row[f"status{which}"]), row[f"cause{which}"]
        meaning = CAUSE_MEANINGS[Cause(cause)] if cause else STATUS_MEANINGS[status]
        return CellContent(str(status), status=status, about=meaning)

    return TableColumn(title, cell, (f"status{which}", f"cause{which}"), about)
