"""The panels with presenters: those that every desk has, and the others, as their tabs are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from napari_panoptic.questions.question import question_kind, question_names
from napari_panoptic.viewer.panels.around import Panels
from napari_panoptic.viewer.panels.audit import AuditPresenter
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from napari_panoptic.viewer.panels.failures.panel import FailuresPresenter
from napari_panoptic.viewer.panels.groups import GroupsPresenter
from napari_panoptic.viewer.panels.legend import LegendPresenter
from napari_panoptic.viewer.panels.metrics import MetricsPresenter
from napari_panoptic.viewer.panels.navigator import NavigatorPresenter
from napari_panoptic.viewer.panels.object_card import ObjectPresenter
from napari_panoptic.viewer.panels.objects.presenter import ObjectsPresenter
from napari_panoptic.viewer.panels.part import PanelPart, Presenter
from napari_panoptic.viewer.panels.question_panel import question_presenter
from napari_panoptic.viewer.panels.ranking import RankingPresenter
from napari_panoptic.viewer.panels.review.plan.presenter import PlanPresenter
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from napari_panoptic.viewer.panels.scores import ScoresPresenter
from napari_panoptic.viewer.panels.settings import SettingsPresenter
from napari_panoptic.viewer.panels.suspects import SuspectsPresenter
from napari_panoptic.viewer.panels.teams.panel import TeamsPresenter
from napari_panoptic.viewer.panels.title import SlidePresenter, TitlePresenter
from napari_panoptic.viewer.panels.versions import VersionsPresenter

_OWN_PANELS: Mapping[str, type[Presenter[Any]] | None] = {
    "scores": ScoresPresenter,
    "suspects": SuspectsPresenter,
    "compare": VersionsPresenter,
    "groups": None,
    "ranking": None,
}
"""Questions whose panels have widgets of their own; None for those within another panel."""


def _question_parts() -> dict[str, type[Presenter[Any]]]:
    """Return the panels of all questions that have one, by their names."""
    return {
        name: _OWN_PANELS.get(name) or question_presenter(question_kind(name))
        for name in question_names()
        if name not in _OWN_PANELS or _OWN_PANELS[name] is not None
    }


_QUESTIONS = _question_parts()
_WITH_FAILURES = ("slices", "causes", "scores", "suspects")
_WITH_TEAMS = ("compare", "sweep")
"""Questions beside the gallery and beside the teams; others come after the former."""
_OTHERS = tuple(name for name in _QUESTIONS if name not in (*_WITH_FAILURES, *_WITH_TEAMS))
BESIDE_FAILURES = tuple(_QUESTIONS[name].title for name in (*_WITH_FAILURES, *_OTHERS))
"""Titles of the panels that are tabs behind the gallery of failures."""

PARTS: tuple[type[Presenter[Any]], ...] = (
    ObjectPresenter,
    FailuresPresenter,
    *(_QUESTIONS[name] for name in (*_WITH_FAILURES, *_OTHERS)),
    TeamsPresenter,
    *(_QUESTIONS[name] for name in _WITH_TEAMS),
    GroupsPresenter,
    AuditPresenter,
    EditsPresenter,
    ReviewPresenter,
    PlanPresenter,
    RankingPresenter,
)


def base_parts(panels: Panels) -> list[PanelPart[Any]]:
    """Make the parts of the panels that every desk has; the table comes before what follows it."""
    return [
        PanelPart(SlidePresenter, panels.title.slide),
        PanelPart(NavigatorPresenter, panels.navigator),
        PanelPart(SettingsPresenter, panels.settings),
        PanelPart(ObjectsPresenter, panels.objects),
        PanelPart(MetricsPresenter, panels.metrics),
        PanelPart(TitlePresenter, panels.title),
        PanelPart(LegendPresenter, panels.legend),
    ]
