"""The panels beside the object table, in the order of their tabs."""

from __future__ import annotations

from typing import Any

from napari_panoptic.questions.question import question_kind
from napari_panoptic.viewer.panels.audit.presenter import AuditPresenter
from napari_panoptic.viewer.panels.edits.presenter import EditsPresenter
from napari_panoptic.viewer.panels.failures.presenter import FailuresPresenter
from napari_panoptic.viewer.panels.groups.presenter import GroupsPresenter
from napari_panoptic.viewer.panels.object_card import ObjectPresenter
from napari_panoptic.viewer.panels.part import Presenter
from napari_panoptic.viewer.panels.question_panel import question_presenter
from napari_panoptic.viewer.panels.ranking.presenter import RankingPresenter
from napari_panoptic.viewer.panels.review.plan.presenter import PlanPresenter
from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter
from napari_panoptic.viewer.panels.scores.presenter import ScoresPresenter
from napari_panoptic.viewer.panels.slices.presenter import SlicesPresenter
from napari_panoptic.viewer.panels.suspects.presenter import SuspectsPresenter
from napari_panoptic.viewer.panels.teams.presenter import TeamsPresenter
from napari_panoptic.viewer.panels.versions.presenter import VersionsPresenter

PARTS: tuple[type[Presenter[Any]], ...] = (
    ObjectPresenter,
    FailuresPresenter,
    SlicesPresenter,
    question_presenter(question_kind("causes")),
    ScoresPresenter,
    SuspectsPresenter,
    TeamsPresenter,
    VersionsPresenter,
    GroupsPresenter,
    AuditPresenter,
    EditsPresenter,
    ReviewPresenter,
    PlanPresenter,
    RankingPresenter,
)
