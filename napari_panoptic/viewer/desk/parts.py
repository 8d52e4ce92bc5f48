"""The panels with presenters: those that every desk has, and the others, as their tabs are."""

from __future__ import annotations

from typing import Any

from napari_panoptic.questions.question import question_kind
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

PARTS: tuple[type[Presenter[Any]], ...] = (
    ObjectPresenter,
    FailuresPresenter,
    question_presenter(question_kind("slices")),
    question_presenter(question_kind("causes")),
    ScoresPresenter,
    SuspectsPresenter,
    TeamsPresenter,
    VersionsPresenter,
    question_presenter(question_kind("sweep")),
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
