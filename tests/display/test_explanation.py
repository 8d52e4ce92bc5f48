import numpy as np
import pytest

from napari_panoptic.display.explanation import Named, explain, plain_text
from napari_panoptic.nuclei.edits import EditedPair
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import CAUSES, STATUSES, Cause, Side, Status
from tests.support.compare import evaluate_case
from tests.support.label_cases import CASES, EPITHELIAL, random_pair

R, P = Side.REFERENCE, Side.PREDICTION


def sentence(name, side, row, **settings):
    return plain_text(explain(evaluate_case(CASES[name], **settings), side, row))


@pytest.mark.parametrize(
    ("name", "side", "row", "expected"),
    [
        ("split-in-two", R, 0, "Split: predictions 1 and 2 share it and cover 100 % of it."),
        ("split-in-two", P, 1, "Fragment: it shares reference 1 with prediction 1."),
        ("split-in-three", P, 0, "Fragment: it shares reference 1 with predictions 2 and 3."),
        ("merged-two", R, 0, "Merged: prediction 1 covers it and reference 2."),
        ("merged-two", P, 0, "Merger: it covers references 1 and 2."),
        ("duplicate", P, 1, "Duplicate: it is inside reference 1, which prediction 1 matches."),
        ("too-small", R, 0, "Too small: prediction 1 covers only 33 % of it."),
        ("too-small", P, 0, "Too small: it covers only 33 % of reference 1."),
        ("too-large", R, 0, "Too large: prediction 1 has 3.0 times its area."),
        ("too-large", P, 0, "Too large: it has 3.0 times the area of reference 1."),
        (
            "displaced",
            R,
            0,
            "Displaced: prediction 1 overlaps it (IoU 0.333, centres 3.0\u2009px apart).",
        ),
        ("missed", R, 1, "Missed: no prediction overlaps it."),
        ("spurious", P, 1, "Spurious: no reference overlaps it."),
        (
            "spill-rim",
            P,
            1,
            "Ambiguous spill: 69 % of it is in an ambiguous area.",
        ),
        ("inside-ambiguous", R, 0, "100 % of it is in an ambiguous area."),
        ("perfect", R, 0, "It matches prediction 1 and has the same class."),
        (
            "misclassified",
            R,
            1,
            "It matches prediction 2, but the prediction class is Macrophage.",
        ),
    ],
)
def test_a_sentence_names_what_explains_the_object(name, side, row, expected):
    assert sentence(name, side, row) == expected


def test_an_overlap_with_a_matched_object_is_told():
    text = sentence("nested-ring", R, 1)
    assert text.startswith("Merged: prediction 1 covers it and reference 1")


def test_objects_named_are_rows_of_the_outcomes():
    evaluation = evaluate_case(CASES["sparse-ids-up-to-2^31"])
    parts = explain(evaluation, R, 0)
    (name,) = [part for part in parts if isinstance(part, Named)]
    assert evaluation.outcomes.prediction.ids[name.row] == name.id
    assert evaluation.outcomes.reference.partner[0] == name.row


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("ambiguous", ["clip", "majority"])
def test_every_object_is_explained(seed, ambiguous):
    evaluation = evaluate_case(random_pair(np.random.default_rng(seed)), ambiguous=ambiguous)
    for side in Side:
        own, across = evaluation.outcomes.side(side), evaluation.outcomes.other(side)
        for row in range(len(own)):
            parts = explain(evaluation, side, row)
            names = [part for part in parts if isinstance(part, Named)]
            status, cause = STATUSES[own.status[row]], CAUSES[own.cause[row]]
            if status in (Status.TP, Status.MISCLASSIFIED):
                assert [name.row for name in names] == [own.partner[row]]
            if cause is Cause.SPLIT:
                assert len(names) >= 2
            if cause in (Cause.TOO_SMALL, Cause.TOO_LARGE, Cause.DISPLACED):
                (name,) = names
                assert across.partner[name.row] < 0
            assert plain_text(parts).endswith(".")


def test_an_edited_pair_is_explained_by_the_objects_that_are_left():
    """Rows of the outcomes are then not those of the overlap table."""
    live = EditedPair(evaluate_case(CASES["split-in-three"]).pair)
    live.set_pixels(P, *np.nonzero(CASES["split-in-three"].prediction == 1), 0)
    evaluation = live.evaluate(EvaluationSettings())
    text = plain_text(explain(evaluation, R, 0))
    assert text == "Split: predictions 2 and 3 share it and cover 67 % of it."
    y, x = np.nonzero(CASES["split-in-three"].reference == 1)
    live.set_pixels(R, y, x, 9, classes={9: EPITHELIAL})
    live.set_pixels(R, y[x < 6], x[x < 6], 4, classes={4: EPITHELIAL})
    evaluation = live.evaluate(EvaluationSettings())
    assert evaluation.outcomes.reference.ids.tolist() == [4, 9]
    assert plain_text(explain(evaluation, R, 0)) == "Missed: no prediction overlaps it."
    assert plain_text(explain(evaluation, P, 0)).startswith("Fragment: it shares reference 9 with")
