"""Actions on the chosen objects: asked before they overwrite others, and undone in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from qtpy.QtCore import QPoint, QRect
from qtpy.QtWidgets import QMessageBox, QWidget

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.explain.failure_groups import FailureGroup, failure_groups
from napari_panoptic.live import actions
from napari_panoptic.live.draft import flattened
from napari_panoptic.live.mends import Claim, Covered, Mend, MendAction, NotMended, Target
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.review.mended_annotation import DoneMend
from napari_panoptic.values.labels import LabelPair
from napari_panoptic.values.vocabulary import Side, Verdict
from napari_panoptic.viewer.editing.history import EditHistory, Step, StepLostError
from napari_panoptic.viewer.kit.events import Within
from napari_panoptic.viewer.kit.keys import Shortcut
from napari_panoptic.viewer.kit.questions import BoxQuestion, ask
from napari_panoptic.viewer.kit.shown import show_error, show_info

T = TypeVar("T")
NO_OBJECT = "Select an object first (N: the next failure); then choose what to do with it."
ELSEWHERE = "This step belongs to {}, now shown. Press again to undo or redo it."
CHANGED_SINCE = (
    "This step cannot be undone or redone any more, since its objects have changed since ({})."
)
NO_PIXELS = "Objects of a slide that is read in windows cannot be mended; export a part of it."


class ObjectAction(StrEnum):
    """The actions on objects."""

    ACCEPT = "accept"
    DELETE = "delete"
    MERGE = "merge"
    SPLIT = "split"
    TAKE_CLASS = "take class"
    MARK_AMBIGUOUS = "mark ambiguous"


@dataclass(frozen=True)
class ActionText:
    """What an action is called, and its key."""

    key: str
    title: str
    meaning: str

    @property
    def shortcut(self) -> Shortcut:
        """The line about its key."""
        words = self.meaning[:1].lower() + self.meaning[1:].rstrip(".")
        return Shortcut(self.key, words, f"mend_{self.title.lower().replace(' ', '_')}")


ACTION_TEXTS: Mapping[ObjectAction, ActionText] = {
    ObjectAction.ACCEPT: ActionText(
        "a", "Accept", "Give the annotation the prediction's outline and class."
    ),
    ObjectAction.DELETE: ActionText("d", "Delete", "Delete the object."),
    ObjectAction.MERGE: ActionText(
        "i", "Merge", "Make one object of the selected ones, or of the predictions of a split."
    ),
    ObjectAction.SPLIT: ActionText(
        "s", "Split", "Divide an object by the objects of the other side in it."
    ),
    ObjectAction.TAKE_CLASS: ActionText("t", "Take class", "Give it the class of its partner."),
    ObjectAction.MARK_AMBIGUOUS: ActionText(
        "r", "Mark ambiguous", "Add its area to the ambiguous area."
    ),
}
DONE_WORDS: Mapping[ObjectAction, str] = {
    ObjectAction.ACCEPT: "accepted",
    ObjectAction.DELETE: "deleted",
    ObjectAction.MERGE: "merged",
    ObjectAction.SPLIT: "split",
    ObjectAction.TAKE_CLASS: "given another class",
    ObjectAction.MARK_AMBIGUOUS: "marked as ambiguous",
}


@dataclass(frozen=True)
class PlaceToDraw:
    """A place at which a verdict said that an object is to be drawn by hand."""

    region: str
    team: str
    #: The object of the verdict.
    target: Target
    #: Its box: y0, x0, y1, x1 in px.
    bbox: tuple[int, int, int, int]


class Asking(StrEnum):
    """What happens to pixels of other objects within a new outline."""

    ASK = "ask"
    KEEP = "keep"
    TAKE = "take"


class ObjectActions:
    """Does actions on objects of the shown region.

    Parameters
    ----------
    session
        The live state.
    history
        Where they can be undone.
    say
        Shows the action that was done.
    go_to
        Shows a region with a team, and an object in it.
    parent
        The widget that questions belong to.
    on_screen
        Returns where objects are on the screen, so that questions about them do not cover them.
    first_id
        Returns an id above all that a side has had.
    settle
        Hands on the latest strokes; called before an action is prepared.
    """

    def __init__(
        self,
        session: Any,
        history: EditHistory,
        *,
        say: Callable[[str], None],
        go_to: Callable[[str, str, Target | None], None],
        parent: QWidget,
        on_screen: Callable[[Iterable[Target]], Sequence[QRect]],
        first_id: Callable[[Side], int],
        settle: Callable[[], object],
    ) -> None:
        self._session, self._history, self._settle = session, history, settle
        self._say, self._go_to, self._parent, self._first_id = say, go_to, parent, first_id
        self._on_screen = on_screen
        self.asking = Asking.ASK
        #: Returns who mends, by name; empty if nobody has given a name.
        self.reviewer: Callable[[], str] = str
        #: The mends that are in effect, oldest first.
        self.done: list[DoneMend] = []
        self._fewer: dict[DoneMend, int] = {}
        #: True while objects change by a step, or because one is undone or redone.
        self.applying = Within()

    def do(self, action: ObjectAction, targets: Sequence[Target], *, elsewhere: int = 0) -> bool:
        """Do an action on objects of this region; return whether something changed.

        Parameters
        ----------
        action, targets
            The action and the objects.
        elsewhere
            The number of objects that the user chose too, in other regions.
        """
        evaluation = self._evaluation(with_all_scores=action is ObjectAction.MERGE)
        if evaluation is None:
            return False
        if not targets:
            show_info(NO_OBJECT)
            return False

        def prepare(claim: Claim, covered: Covered) -> Mend:
            return self._prepared(action, evaluation, targets, claim, covered)

        mend = self._decided(prepare)
        if mend is None or (step := self.apply(mend)) is None:
            return False
        self._history.push(step)
        more = f" In other regions: {elsewhere} more." if elsewhere else ""
        done = f"{_counted_objects(action, mend)} {DONE_WORDS[action]}{_replaced(action, mend)}"
        self._say(f"{done}. Ctrl+Z undoes it.{more}")
        return True

    def of_verdicts(self, verdicts: Mapping[Target, Verdict]) -> Mend | None:
        """Return what verdicts on objects of this region mend; None if it was cancelled."""
        evaluation = self._evaluation(quiet=True)
        if evaluation is None:
            return Mend()

        def prepare(claim: Claim, covered: Covered) -> Mend:
            return actions.mend_of_verdicts(
                evaluation,
                verdicts,
                claim=claim,
                covered=covered,
                first_id=self._first_id(Side.REFERENCE),
            )

        return self._decided(prepare)

    def apply(self, mend: Mend, verdicts: Mapping[Target, Verdict] | None = None) -> Step | None:
        """Apply a mend to the shown region; return its step, None if it changes nothing.

        A place that is only to be drawn counts as a change.

        Parameters
        ----------
        mend
            The mend.
        verdicts
            Those that it follows from, if any.
        """
        for refused in mend.not_done:
            show_info(f"{refused.target[0]} {refused.target[1]}: {refused.reason}.")
        snapshot, team = self._session.snapshot, str(self._session.team)
        is_noted = any(change.action is MendAction.DRAW for change in mend.objects)
        if snapshot is None or (mend.changes_nothing and not is_noted):
            return None
        at, region = datetime.now(UTC), snapshot.region.name
        done = DoneMend(region, team, mend, at, self.reviewer(), verdicts or {})
        before = self._n_failures()
        try:
            with self.applying:
                self._session.apply(mend)
        except PanopticError as error:
            show_error(str(error))
            return None
        self._note(done, before)
        return Step(lambda: self._undo(done), lambda: self._redo(done), region=region)

    def forget_region(self, region: str) -> None:
        """Forget the mends of a region whose edits were discarded."""
        self.done = [own for own in self.done if own.region != region]

    def mended_failures(self, team: str) -> dict[str, int]:
        """Return region -> how many fewer failures a team has there by the mends in effect."""
        found: dict[str, int] = {}
        for own in self.done:
            if own.team == team:
                found[own.region] = found.get(own.region, 0) + self._fewer[own]
        return {region: number for region, number in found.items() if number > 0}

    def places_to_draw(self) -> list[PlaceToDraw]:
        """List the places that are to be drawn by hand, oldest first."""
        return [
            PlaceToDraw(own.region, own.team, mended.target, mended.bbox)
            for own in self.done
            for mended in own.mend.objects
            if mended.action is MendAction.DRAW
        ]

    def _n_failures(self) -> int:
        shown = self._session.evaluation
        return 0 if shown is None else int(shown.counts.n_failures)

    def _note(self, done: DoneMend, failures_before: int) -> None:
        self.done.append(done)
        self._fewer[done] = failures_before - self._n_failures()

    def _redo(self, done: DoneMend) -> str:
        before = self._n_failures()
        if not (problem := self._applied(done.mend, done.region, done.team)):
            self._note(done, before)
            self._say("Done again. Ctrl+Z undoes it.")
        return problem

    def _undo(self, done: DoneMend) -> str:
        if not (problem := self._applied(done.mend.inverse, done.region, done.team)):
            self.done = [own for own in self.done if own is not done]
            self._go_to(done.region, done.team, done.mend.objects[0].target)
            self._say("Undone. Ctrl+Shift+Z does it again.")
        return problem

    def _applied(self, mend: Mend, region: str, team: str) -> str:
        """Apply a mend in its region; return why it cannot be now, empty if it was."""
        snapshot = self._session.snapshot
        is_here = snapshot is not None and snapshot.region.name == region
        if not is_here or self._session.team != team:
            self._go_to(region, team, None)
            return ELSEWHERE.format(region)
        try:
            with self.applying:
                self._session.apply(mend)
        except PanopticError as error:
            raise StepLostError(CHANGED_SINCE.format(error.message)) from error
        return ""

    def _evaluation(
        self, *, with_all_scores: bool = False, quiet: bool = False
    ) -> Evaluation | None:
        """Return the shown evaluation: a verdict is on visible objects, also under a threshold.

        Objects that the threshold leaves out may be in the gaps between merged ones.
        """
        self._settle()
        session = self._session
        found = session.with_all_scores(session.team) if with_all_scores else session.shown
        if found is None:
            return None
        if isinstance(found.pair, LabelPair):
            return flattened(found)
        if not quiet:
            show_info(NO_PIXELS)
        return None

    def _prepared(
        self,
        action: ObjectAction,
        evaluation: Evaluation,
        targets: Sequence[Target],
        claim: Claim,
        covered: Covered,
    ) -> Mend:
        match action:
            case ObjectAction.ACCEPT:
                first = self._first_id(Side.REFERENCE)
                return actions.accept(
                    evaluation, targets, claim=claim, covered=covered, first_id=first
                )
            case ObjectAction.DELETE:
                return actions.delete(evaluation, targets)
            case ObjectAction.MERGE:
                return actions.merge(evaluation, _sets(evaluation, targets), claim=claim)
            case ObjectAction.SPLIT:
                divided = _divided(evaluation, targets)
                first = self._first_id(divided[0][0])
                return actions.split(evaluation, divided, first_id=first)
            case ObjectAction.TAKE_CLASS:
                return actions.take_class(evaluation, targets)
        return actions.mark_ambiguous(evaluation, targets)

    def _decided(self, prepare: Callable[[Claim, Covered], Mend]) -> Mend | None:
        """Prepare a mend, and ask before it overwrites objects; None if it was cancelled."""
        covered = Covered.ASK
        mend = prepare(Claim.TAKE, covered)
        if covers := [own for own in mend.not_done if own.covers]:
            chosen = self._ask_covered(covers)
            if chosen is None:
                return None
            covered = chosen
            mend = prepare(Claim.TAKE, covered)
        if not mend.overwritten or self.asking is Asking.TAKE:
            return mend
        keeps = self.asking is Asking.KEEP
        if self.asking is Asking.ASK:
            answer = self._ask_overwritten(mend)
            if answer is None:
                return None
            keeps = answer is Claim.KEEP
        return prepare(Claim.KEEP, covered) if keeps else mend

    def _ask_overwritten(self, mend: Mend) -> Claim | None:
        names = [f"{side} {id_} ({n} px)" for (side, id_), n in mend.overwritten.items()]
        gone = f" {english_list([str(id_) for _, id_ in mend.vanished])} would vanish."
        text = (
            f"The new outline covers pixels of other objects: {english_list(names)}."
            f"{gone if mend.vanished else ''}"
        )
        options = {"Leave them": Claim.KEEP, "Take them": Claim.TAKE}
        return self._ask(text, options, "Pixels of other objects", list(mend.overwritten))

    def _ask_covered(self, covers: Sequence[NotMended]) -> Covered | None:
        said = [
            f"{own.target[0]} {own.target[1]} covers the annotated objects "
            f"{english_list([str(id_) for id_ in own.covers])}"
            for own in covers
        ]
        total = len({id_ for own in covers for id_ in own.covers})
        options = {
            f"Replace {total}": Covered.REPLACE,
            "Accept beside them": Covered.BESIDE,
            "Leave it out": Covered.ASK,
        }
        text = f"{'; '.join(said)}. To replace: {counted(total, 'annotated object')}."
        named = [(Side.REFERENCE, id_) for own in covers for id_ in own.covers]
        named += [own.target for own in covers]
        return self._ask(text, options, "Accept a merger", named)

    def _ask(
        self, text: str, options: Mapping[str, T], title: str, named: Sequence[Target]
    ) -> T | None:
        """Ask about named objects; None for Cancel, which is also what Enter and Esc mean."""
        window, objects = self._parent.window(), self._on_screen(named)
        return ask(
            self._parent,
            BoxQuestion(title, text, {**options, "Cancel": None}),
            place=lambda box: _put_in_corner(box, window, objects),
        )


def _put_in_corner(box: QMessageBox, window: QWidget | None, objects: Sequence[QRect]) -> None:
    """Place a question in the corner of a window where it covers least of the objects."""
    if window is None:
        return
    size, frame = box.sizeHint(), window.frameGeometry()
    left, top = frame.left(), frame.top()
    right = max(left, frame.right() - size.width())
    bottom = max(top, frame.bottom() - size.height())
    corners = [QRect(QPoint(x, y), size) for y in (bottom, top) for x in (left, right)]

    def covered_px(corner: QRect) -> int:
        covered = [corner.intersected(own) for own in objects]
        return sum(own.width() * own.height() for own in covered)

    box.move(min(corners, key=covered_px).topLeft())


def _replaced(action: ObjectAction, mend: Mend) -> str:
    """Return words for how many annotated objects accepted ones replace; empty without any."""
    gone = {own.target for own in mend.objects if own.action is MendAction.DELETE}
    if action is not ObjectAction.ACCEPT or not gone:
        return ""
    return f", {counted(len(gone), 'annotated object')} replaced"


def _counted_objects(action: ObjectAction, mend: Mend) -> str:
    """Count the objects of an action; those that an accepted one replaces are not accepted."""
    objects = [
        own
        for own in mend.objects
        if action is ObjectAction.DELETE or own.action is not MendAction.DELETE
    ]
    is_prediction = all(own.side is Side.PREDICTION for own in objects)
    return counted(
        len({own.target for own in objects}), "prediction" if is_prediction else "object"
    )


def _sets(evaluation: Evaluation, targets: Sequence[Target]) -> list[list[Target]]:
    """Return the objects to merge: those chosen, or the split that a single one belongs to."""
    if len(targets) > 1:
        by_side = [[own for own in targets if own[0] is side] for side in Side]
        return [own for own in by_side if own]
    return [
        found
        for group in failure_groups(evaluation)
        if len(found := actions.objects_to_merge(group, evaluation)) > 1
        and targets[0] in _members(evaluation, group)
    ] or [list(targets)]


def _divided(evaluation: Evaluation, targets: Sequence[Target]) -> list[Target]:
    """Return the objects to split: those chosen, or the mergers of the groups they belong to."""
    wanted = dict.fromkeys(targets)
    mergers: dict[Target, list[Target]] = {}
    for group in failure_groups(evaluation):
        members = [own for own in _members(evaluation, group) if own in wanted]
        found = actions.objects_to_split(group, evaluation) if members else []
        for member in members:
            mergers.setdefault(member, []).extend(found)
    return list(dict.fromkeys(own for at in wanted for own in mergers.get(at) or [at]))


def _members(evaluation: Evaluation, group: FailureGroup) -> list[Target]:
    rows = {Side.REFERENCE: group.reference_rows, Side.PREDICTION: group.prediction_rows}
    return [
        (side, id_)
        for side in Side
        for id_ in evaluation.outcomes.side(side).ids[rows[side]].tolist()
    ]
