"""The place of the review file, chosen by the user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from qtpy.QtWidgets import QFileDialog, QWidget

from napari_panoptic.review.reviewing import Reviewing
from napari_panoptic.viewer.state.preferences import PREFERENCES


class ReviewPlaces:
    """Moves a review to another file.

    Parameters
    ----------
    root
        The folder of the cohort, for which the choice is remembered.
    reviewing
        The review.
    parent
        The parent of dialogs.
    changing
        Called before another file is used.
    """

    def __init__(
        self, root: Path, reviewing: Reviewing, parent: QWidget, changing: Callable[[], None]
    ) -> None:
        self._root, self._reviewing = root, reviewing
        self._parent, self._changing = parent, changing

    def choose(self) -> None:
        """Ask for a file, new or existing."""
        chosen, _ = QFileDialog.getSaveFileName(
            self._parent,
            "Keep verdicts in this file; one that exists is continued",
            str(self._reviewing.path),
            "Reviews (*.sqlite)",
            options=QFileDialog.Option.DontConfirmOverwrite,
        )
        if chosen:
            self._use(Path(chosen))

    def use_suggestion(self) -> None:
        """Use the place that is suggested where the present one cannot be used."""
        problem = self._reviewing.problem
        if problem is not None and problem.suggestion is not None:
            self._use(problem.suggestion)

    def _use(self, path: Path) -> None:
        PREFERENCES.choose_review_file(self._root, path)
        self._changing()
        self._reviewing.use(path=path)
