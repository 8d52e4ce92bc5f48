"""The panel of scores in a real window: a region and a list without predictions of low score.

The oracle of the threshold is a second team, whose files lack what the threshold removes.
"""

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_panoptic.explain.failures import FailureName
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.desk import link
from napari_panoptic.viewer.desk.nuclei import PARTS
from napari_panoptic.viewer.kit.widgets import is_in_sight
from napari_panoptic.viewer.panels.failures.panel import FailuresPresenter
from napari_panoptic.viewer.panels.object_card import ObjectPresenter
from napari_panoptic.viewer.panels.scores import NO_SCORES, ScoresPresenter
from napari_panoptic.viewer.panels.teams import TeamsPresenter
from tests.support.scored_files import DESCRIPTION, write_side
from tests.viewer.finding import canvas_of

LEFT = Qt.MouseButton.LeftButton
LEAST = 0.43


@pytest.fixture(scope="module")
def shown_cohort(tmp_path_factory):
    """Write a team with scores, and the same without low scores, which has none at all."""
    root, rng = tmp_path_factory.mktemp("scores"), np.random.default_rng(5)
    (root / "cohort.toml").write_text(DESCRIPTION)
    for patient in range(3):
        reference, prediction = np.zeros((2, 60, 60), np.uint16)
        annotated, predicted = [], []
        for number in range(1, 26):
            y, x = np.array(divmod(number - 1, 5)) * 12 + 1
            kind = str(rng.choice(["Tumour", "Lymphocyte"]))
            score = round(float(rng.random()), 3)
            if rng.random() < 0.9:
                reference[y : y + 8, x : x + 8] = number
                annotated.append((number, kind))
            # Some are pieces: removing one of two decides the cause of the other.
            shift = 1 if rng.random() < score + 0.3 else 4
            prediction[y : y + 8, x + shift : x + shift + 7] = number
            if number % 4 == 0:
                prediction[y + 4 : y + 8, x + shift : x + shift + 7] = 100 + number
                predicted.append((100 + number, kind, round(float(rng.random()), 3)))
            guess = kind if rng.random() < 0.8 else "Tumour"
            predicted.append((number, guess, score if rng.random() < 0.9 else ""))
        low = [row[0] for row in predicted if row[2] != "" and row[2] < LEAST]
        kept = [row[:2] for row in predicted if row[0] not in low]
        name = f"p{patient}_1"
        write_side(root / "annotation", name, reference, annotated)
        write_side(root / "teams" / "scored", name, prediction, predicted)
        write_side(
            root / "teams" / "cut", name, np.where(np.isin(prediction, low), 0, prediction), kept
        )
    return open_cohort(root)


@pytest.fixture(scope="module")
def shown_parts():
    wanted = (FailuresPresenter, ScoresPresenter, TeamsPresenter, ObjectPresenter)
    return tuple(part for part in PARTS if part in wanted)


@pytest.fixture
def part(open_desk, wait_until):
    """Bring the panel to the front by its key, in the first region."""
    desk = open_desk
    desk.link.go_to("p0_1", team="scored")
    desk.session.set_threshold(None)
    desk.show_workspace("Failures")
    wait_until(lambda: desk.is_settled)
    QTest.keyClick(
        canvas_of(desk.viewer),
        "t",
        Qt.KeyboardModifier.AltModifier,
    )
    part = desk.presenter(ScoresPresenter)
    wait_until(lambda: is_in_sight(part.panel))
    return part


def comparable(evaluation):
    return evaluation.objects.drop(columns="score")


def summed(session):
    """Return what the cohort's summary says of each region and team."""
    return {
        at: (*map(np.ndarray.tolist, (line.counts.tp, line.counts.fp, line.counts.fn)),)
        for at, line in session.summaries.items()
    }


def drawn_ids(desk, team):
    """Return the ids of the objects whose colour can be seen in the layer of a team."""
    layer, values = desk.link.scene.object_layer(Side.PREDICTION, team)
    pixels = np.unique(layer.data)
    alpha = layer.colormap.map(pixels)[:, 3]
    return set(values.ids(pixels[alpha > 0]).tolist()) - {0}


def test_threshold_shows_the_region_as_if_low_scores_had_not_been_written(
    open_desk, part, wait_until
):
    desk, session, panel = open_desk, open_desk.session, part.panel
    whole, before = session.evaluation, summed(session)
    cut = session.snapshot.evaluations["cut"]
    n_low = int((whole.outcomes.prediction.score < LEAST).sum())
    assert n_low > 3
    panel.threshold.slider.setValue(LEAST)
    wait_until(lambda: desk.is_settled)
    found = session.evaluation
    pd.testing.assert_frame_equal(comparable(found), comparable(cut))
    assert found.metrics == cut.metrics
    # Title, panel, table, picture.
    words = f"ithout {n_low} objects below {LEAST}"
    assert words in desk.panels.title.title()
    assert words in panel.threshold.state.text()
    rows = desk.panels.objects.model.rows
    assert len(rows) == len(cut.objects)
    assert drawn_ids(desk, "scored") == set(cut.outcomes.prediction.ids.tolist())
    # What the cohort shows stays, and so do the files.
    assert summed(session) == before
    assert session.loaded.evaluations["scored"] is whole
    # A panel that evaluates pixels, not rows, follows.
    desk.show_workspace("Teams")
    wait_until(lambda: desk.is_settled)
    teams = desk.presenter(TeamsPresenter)
    assert teams.value.here.evaluations["scored"].metrics.pq == pytest.approx(cut.metrics.pq)
    QTest.mouseClick(panel.threshold.reset, LEFT)
    wait_until(lambda: desk.is_settled)
    assert session.evaluation is whole
    assert "below" not in desk.panels.title.title()
    assert drawn_ids(desk, "scored") == set(whole.outcomes.prediction.ids.tolist())


def test_going_to_an_object_that_is_not_shown_says_why(open_desk, part, wait_until, monkeypatch):
    desk, session, said = open_desk, open_desk.session, []
    monkeypatch.setattr(link, "show_info", said.append)
    outcomes = session.evaluation.outcomes
    low = int(outcomes.prediction.ids[outcomes.prediction.score < LEAST][0])
    sure = int(outcomes.prediction.ids[outcomes.prediction.score > LEAST][0])
    region, absent = session.snapshot.region.name, "{} does not exist under the current settings."
    desk.link.go_to(region, Side.PREDICTION, 9999)
    assert said.pop() == absent.format("prediction 9999")
    part.panel.threshold.slider.setValue(LEAST)
    wait_until(lambda: desk.is_settled)
    desk.link.go_to(region, Side.PREDICTION, low)
    hidden = f"prediction {low} has a score below the threshold. Reset the threshold in Scores."
    assert said.pop() == hidden
    desk.link.go_to(region, Side.PREDICTION, 9999)
    assert said.pop() == absent.format("prediction 9999")
    desk.link.go_to(region, Side.REFERENCE, 9999)
    assert said.pop() == absent.format("reference 9999")
    desk.link.go_to(region, Side.PREDICTION, sure)
    assert not said
    assert session.selection.id == sure


@pytest.mark.long
def test_threshold_ends_with_team_region_and_edits(open_desk, part, wait_until):
    desk, session, panel = open_desk, open_desk.session, part.panel
    whole = session.evaluation
    low = int(np.flatnonzero(whole.outcomes.prediction.score < LEAST)[0])
    session.select_row(Side.PREDICTION, low)
    panel.threshold.slider.setValue(LEAST)
    assert session.selection is None
    # Other settings keep it.
    settings = session.settings
    desk.panels.settings.settings_chosen.emit(settings.replaced(iou_threshold=0.6))
    wait_until(lambda: desk.is_settled)
    assert session.threshold == LEAST
    assert session.evaluation.settings.iou_threshold == 0.6
    assert session.evaluation.metrics == session.snapshot.evaluations["cut"].metrics
    desk.panels.settings.settings_chosen.emit(settings)
    wait_until(lambda: desk.is_settled)
    id_ = int(whole.outcomes.prediction.ids[-1])
    session.set_class(Side.PREDICTION, id_, "Tumour")
    assert session.threshold is None
    assert len(session.evaluation.outcomes.prediction) == len(whole.outcomes.prediction)
    assert panel.threshold.slider.parentWidget().isHidden()
    session.discard_edits()
    panel.threshold.slider.setValue(LEAST)
    session.set_team("cut")
    wait_until(lambda: desk.is_settled)
    assert session.threshold is None
    assert panel.threshold.state.text() == NO_SCORES
    session.set_team("scored")
    panel.threshold.slider.setValue(LEAST)
    desk.link.go_to("p1_1")
    wait_until(lambda: desk.is_settled)
    assert session.threshold is None
    assert session.evaluation is session.loaded.evaluations["scored"]


@pytest.mark.long
def test_sure_and_wrong_predictions_lead_to_objects_and_to_the_gallery(open_desk, part, wait_until):
    desk, session, panel = open_desk, open_desk.session, part.panel
    QTest.mouseClick(panel.work.start, LEFT)
    wait_until(lambda: desk.is_settled)
    frames = []
    for line in session.summaries:
        if line[1] == "scored":
            desk.link.go_to(line[0])
            wait_until(lambda: desk.is_settled)
            frames.append(session.evaluation.objects.assign(region=line[0]))
    objects = pd.concat(frames)
    wrong = objects[(objects["side"] == "prediction") & objects["score"].notna()]
    wrong = wrong[wrong["status"].isin(["FP", "misclassified"])]
    wrong = wrong.sort_values(["score"], ascending=False)
    texts = panel.sentences.texts()
    assert len(texts) == len(wrong) > 5
    assert [f"{score:.3f}" for score in wrong["score"]] == [t.split()[1] for t in texts]
    panel.sentences.opened.emit(0)
    wait_until(lambda: desk.is_settled)
    first, chosen = wrong.iloc[0], session.selection
    assert (session.snapshot.region.name, chosen.id) == (first["region"], first["id"])
    card = dict(desk.presenter(ObjectPresenter).panel.card.facts.details())
    assert card["Score"] == f"{first['score']:.3f}"
    QTest.mouseClick(panel.making.start, LEFT)
    wait_until(lambda: desk.is_settled)
    only = desk.link.failures.only.names
    assert only == {
        FailureName("scored", at.region, Side.PREDICTION, int(at.id)) for at in wrong.itertuples()
    }
    assert len(desk.presenter(FailuresPresenter).panel.view.items.rows) == len(only)
    desk.link.failures.show_only(None)
    # A point of the plot of thresholds sets the slider.
    desk.link.reveal("Scores")
    panel.plots.choose("Thresholds")
    wait_until(lambda: not part.is_busy)
    points = next(iter(panel.plots.view.plot.points.values()))
    panel.plots.view.point_chosen.emit(points[len(points) // 2])
    assert session.threshold == points[len(points) // 2].x


@pytest.mark.long
def test_score_is_a_column_where_there_is_one(open_desk, part, wait_until):  # noqa: ARG001
    desk, table = open_desk, open_desk.panels.objects
    names = [
        table.model.headerData(k, Qt.Orientation.Horizontal)
        for k in range(table.model.columnCount())
    ]
    at = names.index("Score")
    assert not table.view.isColumnHidden(at)
    desk.session.set_team("cut")
    wait_until(lambda: desk.is_settled)
    assert table.view.isColumnHidden(at)
