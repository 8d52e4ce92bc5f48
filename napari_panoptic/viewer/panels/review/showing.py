"""What the review shows of objects and verdicts: in its panel and in the object table."""

from __future__ import annotations

from napari_panoptic.display.object_rows import GivenVerdicts
from napari_panoptic.review.file import may_be_there
from napari_panoptic.review.judged import Judged
from napari_panoptic.review.verdicts import ReviewRecord, Role
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.panels import slide_texts
from napari_panoptic.viewer.panels.review.chosen import ReviewDetails, UnderReview
from napari_panoptic.viewer.panels.review.going_on import Adjudicating
from napari_panoptic.viewer.panels.review.panel import NOTHING_TO_JUDGE
from napari_panoptic.viewer.panels.slide_texts import on_slide
from napari_panoptic.viewer.state.preferences import PREFERENCES


class ReviewShowing:
    """Shows the chosen objects and their verdicts; decides nothing.

    Parameters
    ----------
    review
        The review.
    adjudicating
        The disagreements, if the user decides between two reviewers.
    details
        Tags and note of the objects that a verdict applies to.
    """

    def __init__(
        self, review: UnderReview, adjudicating: Adjudicating, details: ReviewDetails
    ) -> None:
        self._session, self._link = review.around.session, review.around.link
        self._panel, self._reviewing = review.panel, review.reviewing
        self._verdicts, self._chosen = review.verdicts, review.chosen
        self._adjudicating, self._details = adjudicating, details
        self._shown: tuple[object, ...] = ()

    def show_place(self) -> None:
        """Show who reviews, where verdicts are kept, and what prevents it."""
        reviewing, panel = self._reviewing, self._panel
        panel.show_reviewer(reviewing.reviewer, previous=PREFERENCES.reviewer)
        panel.show_place(reviewing.path, is_there=may_be_there(reviewing.path))
        problem = reviewing.problem
        if problem is None:
            panel.show_problem("")
        else:
            panel.show_problem(problem.message, suggestion=problem.suggestion)
        panel.undo.setEnabled(reviewing.may_undo())
        panel.compare.setEnabled(reviewing.store is not None)

    def show_history(self) -> None:
        """List the verdicts on the selected object."""
        selection = self._session.selection
        entries = (
            [] if selection is None else self._reviewing.history(selection.side, selection.row)
        )
        self._panel.history.show_object(entries)

    def show_table(self) -> None:
        """Show the verdicts in the object table."""
        judged = self._reviewing.judged
        given = {} if judged is None else _by_id(judged)
        self._link.panels.objects.show_verdicts(given)

    def show_draft(self) -> None:
        """Show tags and note of the object once more: it has another draft."""
        self._shown = ()
        self.show_object()

    def show_object(self) -> None:
        """Show what a verdict applies to, and its verdict, tags and note."""
        session, names, selection = self._session, self._chosen.names(), self._session.selection
        one = selection if len(names) == 1 else None
        self._adjudicating.show(None if one is None else self._reviewing.subject(one.side, one.row))
        if not names:
            hint = None
            if session.evaluation is None:
                hint = on_slide(session.snapshot, slide_texts.REVIEW, NOTHING_TO_JUDGE)
            self._panel.show_object(None, None, hint=hint)
            self._shown = ()
            return
        records = [self._verdicts.record(name) for name in names]
        shown = (self._reviewing.reviewer, *names)
        if is_fresh := shown != self._shown:
            self._details.write()  # the drafts of the objects before
        verdicts = {None if record is None else record.verdict for record in records}
        self._panel.show_object(
            self._chosen.title(names),
            self._own(records[0]) if len(names) == 1 else None,
            verdict=verdicts.pop() if len(verdicts) == 1 else None,
            fresh=is_fresh,
            draft=self._details.draft(names[0]) if len(names) == 1 else None,
        )
        self._shown = shown

    def _own(self, record: ReviewRecord | None) -> ReviewRecord | None:
        """Return a verdict if it is the user's own; a decision shows others' as well."""
        role = Role.REVIEWER if self._reviewing.adjudicates is None else Role.ADJUDICATOR
        return record if record is not None and record.role is role else None


def _by_id(judged: Judged) -> dict[Side, GivenVerdicts]:
    """Return the verdicts as the object table wants them."""
    outcomes = judged.evaluation.outcomes
    return {side: GivenVerdicts(outcomes.side(side).ids, judged.codes[side]) for side in Side}
