"""What a question about a region is answered from: the region and its teams, as they are now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.live.session import Session
from napari_panoptic.nuclei.evaluate import Evaluation, evaluate
from napari_panoptic.questions.answer import AnswerTable
from napari_panoptic.tables.columns import TableSpec
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Here:
    """A region, and its teams; nothing in it changes any more."""

    #: Name of the region; empty for arrays.
    region: str
    #: The team that is looked at.
    team: str
    #: Team -> its evaluation, of one annotation and under the same settings. All teams that are
    #: compared, or only the one that is looked at.
    evaluations: Mapping[str, Evaluation]
    #: Team -> its label pair, if it is still to be evaluated; see `complete`.
    pairs: Mapping[str, LabelPair] = field(default_factory=dict)
    #: How to evaluate them.
    settings: EvaluationSettings = field(default_factory=EvaluationSettings)

    @property
    def teams(self) -> tuple[str, ...]:
        """The teams, those first that are evaluated."""
        return (*self.evaluations, *self.pairs)

    def complete(self) -> Here:
        """Return the same with all teams evaluated, without distances; for workers."""
        settings = self.settings.replaced(distances=False)
        more = {team: evaluate(pair, settings) for team, pair in self.pairs.items()}
        return replace(self, evaluations={**self.evaluations, **more}, pairs={})

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


def present(session: Session, teams: Collection[str] | None = None) -> Here | None:
    """Take the present state of the region that is shown.

    Parameters
    ----------
    session
        The live state; on the main thread.
    teams
        Only these teams; all where None. The first of them in the cohort's order is looked at.

    Returns
    -------
    Here or None
        To be completed by a worker. None if there is no region, or nothing in it to compare.
    """
    snapshot = session.snapshot
    if snapshot is None or snapshot.reference is None:
        return None
    region, settings = snapshot.region.name, snapshot.settings
    wanted = [name for name in snapshot.predictions if teams is None or name in teams]
    if not session.has_edits(region):
        done = {team: snapshot.evaluations[team] for team in wanted if team in snapshot.evaluations}
        return Here(region, next(iter(done)), done, settings=settings) if done else None
    # Images under edit change with the next stroke: the worker gets copies.
    reference = _copied(snapshot.reference)
    pairs = {
        team: LabelPair(
            reference, _copied(snapshot.predictions[team]), snapshot.ambiguous, snapshot.mpp
        )
        for team in wanted
    }
    return Here(region, wanted[0], {}, pairs, settings) if pairs else None


def _copied(labels: LabelImage) -> LabelImage:
    return replace(
        labels,
        index=labels.index.copy(),
        ids=labels.ids.copy(),
        class_index=labels.class_index.copy(),
        original_ids=labels.original_ids.copy(),
    )
