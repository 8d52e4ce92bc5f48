"""The plan of a review as part of the desk."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from napari_panoptic.viewer.panels.around import Surroundings
from napari_panoptic.viewer.panels.part import PanelPart
from napari_panoptic.viewer.panels.review.plan.panel import PlanPanel
from napari_panoptic.viewer.panels.review.plan.presenter import PlanPresenter

if TYPE_CHECKING:
    from napari_panoptic.viewer.panels.review.presenter import ReviewPresenter


class PlanPart(PanelPart[PlanPresenter]):
    """The plan: its panel, and a presenter while a cohort is shown.

    Parameters
    ----------
    review
        Return the review without a plan of the cohort that is shown.
    """

    shows_outcomes = False

    def __init__(self, review: Callable[[], ReviewPresenter]) -> None:
        super().__init__(PlanPresenter)
        self._review = review

    @property
    def widget(self) -> PlanPanel:
        """The panel."""
        return cast(PlanPanel, self._panel)

    def make(self, around: Surroundings) -> PlanPresenter:
        """Return the presenter of a cohort."""
        return PlanPresenter(around, self.widget, self._review())

    @property
    def takes_verdicts(self) -> bool:
        """Whether the keys of verdicts apply to the items of the plan."""
        presenter = self.presenter
        return presenter is not None and presenter.is_on and presenter.is_in_sight
