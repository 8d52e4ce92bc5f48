"""The panel of any question about the region that is shown: inputs, and the answer while seen.

An answer is outdated if another question would be asked now, or about another evaluation: both are
values, which are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from qtpy.QtWidgets import QCheckBox, QSizePolicy

from napari_panoptic.display import marks
from napari_panoptic.display.object_layers import PixelSize
from napari_panoptic.display.regions.here import Here, present
from napari_panoptic.display.regions.question import RegionQuestion
from napari_panoptic.display.slide_texts import on_slide
from napari_panoptic.display.styles import count_text
from napari_panoptic.display.title import why_nothing
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.live.session import Selection
from napari_panoptic.live.snapshots import RegionSnapshot
from napari_panoptic.questions.answer import Answer, AnswerTable, UnansweredError
from napari_panoptic.values.vocabulary import SIDES, Side
from napari_panoptic.values.windowed_labels import Box
from napari_panoptic.viewer.jobs.jobs import Latest
from napari_panoptic.viewer.kit.array_table import Column
from napari_panoptic.viewer.kit.inputs import Choice, ChoiceButtons
from napari_panoptic.viewer.kit.layouts import MIN_LIST_PX, Row
from napari_panoptic.viewer.layers import camera
from napari_panoptic.viewer.layers.labels import MarkLayer
from napari_panoptic.viewer.panels.part import Connections, Surroundings
from napari_panoptic.viewer.panels.question.columns import table_columns
from napari_panoptic.viewer.panels.question.view import QuestionView
from napari_panoptic.viewer.panels.region_panel import WAITING, SeenPresenter

_RING_ON_SCREEN_PX = 3.0


@dataclass(frozen=True, eq=False, kw_only=True)
class AnsweredHere:
    """The answer to a question about a region that is shown."""

    #: The region. Its label images may be under edit: not for workers.
    snapshot: RegionSnapshot
    here: Here
    #: The answer, or why there is none.
    answer: Answer | None
    why: str = ""
    #: The columns of its tables.
    columns: Mapping[AnswerTable, list[Column]] = field(default_factory=dict)


class RegionView(QuestionView):
    """The view of a question that is asked without a button, with its lists on buttons.

    Parameters
    ----------
    kind
        The question.
    above
        Rows above it; see `lay_out`.
    """

    def __init__(self, kind: type[RegionQuestion], *above: Row) -> None:
        self.marked = QCheckBox("Mark")
        self.marked.setToolTip("Mark the listed objects in the image; of groups, the chosen one.")
        self.marked.setChecked(True)
        self._columns: Mapping[AnswerTable, list[Column]] = {}
        super().__init__(kind, *above)
        self.marked.setVisible(bool(kind.marks_name))
        self.marked.toggled.connect(lambda _on: self.table_chosen.emit())
        # In a low dock the list shrinks before the panel scrolls.
        self.table.setMinimumHeight(MIN_LIST_PX)
        self.table.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self.work.start.hide()
        self.tools.hide()

    def show_answered(self, value: AnsweredHere) -> None:
        """Show the answer about a region, or why there is none."""
        self._columns = value.columns
        if value.answer is None:
            self.show_nothing(value.why)
        else:
            self.show_answer(value.answer)
            self.which.show()  # with the count and the mark also of a single list
            self.show_note("\n".join(value.answer.notes))

    def chooser(self) -> ChoiceButtons:
        """Return buttons, with the mark beside them."""
        return ChoiceButtons((), self.marked)

    def entry(self, table: AnswerTable) -> Choice:
        """Return the choice of a table, with the number of its rows."""
        return Choice(table, f"{table.title} {count_text(len(table.frame))}", table.spec.caption)

    def columns_of(self, table: AnswerTable) -> list[Column]:
        """Return the columns of a table, most of which a worker has made."""
        return self._columns.get(table) or super().columns_of(table)

    def objects(self, rows: Iterable[int]) -> list[FailureName]:
        """Return the objects that rows of the table are about."""
        table = self.shown_table
        if table is None or table.objects is None:
            return []
        return [name for row in rows for name in table.objects(row).names]

    def show_selection(self, names: Sequence[FailureName]) -> None:
        """Select the first row that is about one of these objects; none if they are not listed."""
        table = self.shown_table
        known = {} if table is None else table.row_of
        row = next((known[name] for name in names if name in known), None)
        if row != self.table.selected():
            self.table.select(row)
            self.show_row(row)


class RegionPresenter(SeenPresenter[RegionView]):
    """Answers its question about the region and team that are shown, and marks what is listed.

    The marks are there only while the panel is in sight: a ring around the objects of the chosen
    row if rows are made of several, else dashes around all that are listed.
    """

    kind: ClassVar[type[RegionQuestion]]

    def __init__(self, around: Surroundings, panel: RegionView) -> None:
        super().__init__(around, panel)
        self.value: AnsweredHere | None = None
        """What is shown; None if that is of another region or team, or nothing is."""
        self.marks = MarkLayer(around.viewer, self.kind.marks_name)
        self._latest: Latest[AnsweredHere] = Latest(self._take)
        self._drawing: Latest[NDArray[np.uint8]] = Latest(self._on_dashes)
        self._asked: tuple[object, ...] = ()

    @property
    def is_busy(self) -> bool:
        """Whether something is being computed or drawn."""
        return self._latest.is_busy or self._drawing.is_busy

    def connections(self) -> Connections:
        """Listen to session and panel."""
        return [*super().connections(), *self.connections_of_lists()]

    def connections_of_lists(self) -> Connections:
        """Return the signals of inputs and lists, and of the selection."""
        panel = self.panel
        return [
            (self.session.selection_changed, self._on_selection),
            (panel.changed, self.refresh),
            (panel.table_chosen, self.mark),
            (panel.object_wanted, self._on_object),
            (panel.centre_wanted, self._on_centre),
            (panel.link_wanted, self._on_link),
        ]

    def close(self) -> None:
        """Stop, and take the marks away."""
        self._latest.close()
        self._drawing.close()
        (self.marks.forget if self.is_window_gone else self.marks.remove)()

    def refresh(self, *_changed: object) -> None:
        """Let go of the answer about another region or team at once; compute as soon as seen."""
        if self.value is not None and not self.is_present(self.value):
            self.value, self._asked = None, ()
            self.mark()
        super().refresh()

    def compute_now(self) -> None:
        """Answer in a worker, unless that is the answer to the same question."""
        snapshot, teams = self.session.snapshot, self.teams()
        if snapshot is not None and not snapshot.is_slide and snapshot.pending & {*teams}:
            self._stop()  # stale: the new evaluation is on its way
            if self.value is None:
                self.panel.show_nothing(WAITING)
            self.on_waiting(snapshot)
        elif snapshot is None or (here := present(self.session, teams)) is None:
            self.forget(on_slide(snapshot, self.kind.on_slide, self.why_nothing()))
        else:
            question = self.kind(**self.panel.values)
            asked = (*here.evaluations.values(), question)
            if here.pairs or asked != self._asked:
                self._asked = () if here.pairs else asked
                self.start(snapshot, here, question)

    def teams(self) -> tuple[str, ...]:
        """Return the teams that are looked at."""
        return () if self.session.team is None else (self.session.team,)

    def is_present(self, value: AnsweredHere) -> bool:
        """Return whether an answer is about the region and team that are shown."""
        return self.is_shown(value.snapshot) and value.here.team == self.session.team

    def on_waiting(self, snapshot: RegionSnapshot) -> None:
        """Show what can be shown before the teams are evaluated."""

    def why_nothing(self) -> str:
        """Return why there is nothing to evaluate."""
        return why_nothing(self.session)

    def start(self, snapshot: RegionSnapshot, here: Here, question: RegionQuestion) -> None:
        """Answer a question in a worker."""
        self._latest.start(partial(_answered, snapshot, here, question))

    def show(self, value: AnsweredHere) -> None:
        """Show an answer."""
        self.panel.show_answered(value)
        self._on_selection(self.session.selection)

    def forget(self, why: str) -> None:
        """Show why there is no answer."""
        self._stop()
        self.value = None
        self.panel.show_nothing(why)

    def mark(self, *_changed: object) -> None:
        """Mark objects on the image, or take the marks away."""
        value, panel, table = self.value, self.panel, self.panel.shown_table
        is_wanted = value is not None and panel.marked.isChecked() and self.is_in_sight
        self._drawing.drop()
        if value is None or table is None or not is_wanted or not self.kind.marks_name:
            self.marks.remove()
        elif table.members is None:
            self._mark_listed(value.here, value.snapshot.shape)
        else:
            self._mark_group(value)

    def _mark_listed(self, here: Here, shape: tuple[int, int]) -> None:
        names = self.panel.objects(self.panel.table.rows())
        if names:
            self._drawing.start(partial(_dashes, here, shape, names))
        else:
            self.marks.remove()

    def _mark_group(self, value: AnsweredHere) -> None:
        """Draw one ring around the objects of the selected row."""
        row = self.panel.table.selected()
        if row is None:
            self.marks.remove()
            return
        objects, pair = _rows_of(value.here, self.panel.objects([row])), value.here.evaluation.pair
        ring = marks.ring_around(
            [(pair.side(side), rows + 1) for side, rows in objects.items()],
            _box(value.here, objects),
            ring_px=camera.ring_px(self.link.scene.camera.zoom, _RING_ON_SCREEN_PX),
        )
        pixels = PixelSize.of(value.snapshot)
        self.marks.show(ring.image, pixels, origin_yx_px=ring.origin_yx_px)

    def _on_dashes(self, picture: NDArray[np.uint8]) -> None:
        if self.value is not None:
            self.marks.show(picture, PixelSize.of(self.value.snapshot))

    def _take(self, value: AnsweredHere) -> None:
        if self.is_present(value):
            self.value = value
            self.show(value)
        else:  # the panel was hidden when another region came
            self._asked = ()

    def _stop(self) -> None:
        self._latest.drop()
        self._asked = ()

    def _on_sight(self, seen: bool) -> None:
        super()._on_sight(seen)
        self.mark()

    def _on_selection(self, selection: Selection | None) -> None:
        """Select the row of an object, whichever team was selected with an annotated one."""
        if self.value is None:
            return
        before, here, names = self.panel.table.selected(), self.value.here, []
        if selection is not None:
            others = here.evaluations if selection.side is Side.REFERENCE else ()
            teams = (selection.team, *others)
            names = [FailureName(t, here.region, selection.side, selection.id) for t in teams]
        self.panel.show_selection(names)
        if self.panel.table.selected() != before:
            self.mark()

    def _on_object(self, objects: FailureSet) -> None:
        """Select an object of a row, with the team that it names."""
        if self.value is None:
            return
        names = objects.in_order()
        name = next((name for name in names if name.team == self.session.team), names[0])
        if name.side is Side.PREDICTION or len(names) == 1:
            self.session.set_team(name.team)
        self.select_id(name.side, name.id)
        table = self.panel.shown_table
        if table is not None and table.members is not None:
            rows = _rows_of(self.value.here, names)
            self.link.scene.camera.show_box(_box(self.value.here, rows), only_if_hidden=True)
            self.mark()

    def _on_centre(self, objects: FailureSet) -> None:
        table = self.panel.shown_table
        self._on_object(objects)
        if self.value is not None and table is not None and table.members is not None:
            rows = _rows_of(self.value.here, objects.in_order())
            self.link.scene.camera.centre_box(_box(self.value.here, rows))
        else:
            self.centre_selected()

    def _on_link(self, sets: Sequence[FailureSet]) -> None:
        self.link.links.copy([name for own in sets for name in own.in_order()])


def region_presenter(kind: type[RegionQuestion]) -> type[RegionPresenter]:
    """Return the presenter of a question that needs no widgets of its own."""
    own = {"kind": kind, "title": kind.title, "key": kind.key}
    own["panel_type"] = partial(RegionView, kind)
    return type(f"{kind.__name__}Presenter", (RegionPresenter,), own)


def _rows_of(here: Here, names: Sequence[FailureName]) -> dict[Side, NDArray[np.intp]]:
    """Return side -> rows of those objects that the team has."""
    ids = {side: [name.id for name in names if name.side is side] for side in SIDES}
    sides = {side: here.evaluation.outcomes.side(side).ids for side in SIDES}
    return {side: np.flatnonzero(np.isin(sides[side], ids[side])) for side in SIDES}


def _box(here: Here, rows: Mapping[Side, NDArray[np.intp]]) -> Box:
    """Return the box around objects: y0, x0, y1, x1 in px, half open."""
    outcomes = here.evaluation.outcomes
    boxes = np.concatenate([outcomes.side(side).bbox[own] for side, own in rows.items()])
    (y0, x0), (y1, x1) = boxes[:, :2].min(axis=0).tolist(), boxes[:, 2:].max(axis=0).tolist()
    return y0, x0, y1, x1


# --- in workers -------------------------------------------------------------------------------


def _answered(snapshot: RegionSnapshot, here: Here, question: RegionQuestion) -> AnsweredHere:
    here = here.complete()
    try:
        answer = question.answered(here)
    except UnansweredError as error:
        return AnsweredHere(snapshot=snapshot, here=here, answer=None, why=str(error))
    columns = prepared_columns(answer)
    return AnsweredHere(snapshot=snapshot, here=here, answer=answer, columns=columns)


def prepared_columns(answer: Answer) -> dict[AnswerTable, list[Column]]:
    """Return the columns of the tables of an answer, and find the rows of objects."""
    for table in answer.tables:
        _ = table.row_of
    return {table: table_columns(table) for table in answer.tables}


def _dashes(here: Here, shape: tuple[int, int], names: Sequence[FailureName]) -> NDArray[np.uint8]:
    """Draw dashes around objects."""
    pair, outcomes = here.evaluation.pair, here.evaluation.outcomes
    return marks.dashed(
        shape,
        [
            (pair.side(side), rows + 1, outcomes.side(side).bbox[rows])
            for side, rows in _rows_of(here, names).items()
        ],
    )
