import numpy as np

from napari_panoptic import evaluate_pair
from napari_panoptic.display.describe import hover_html, object_facts
from napari_panoptic.values.vocabulary import Cause, Side, Status
from tests.support.small_pairs import four_fates


def facts_of(side, row, *, mpp=0.5, evaluated=True):
    evaluation = four_fates(mpp)
    labels = evaluation.pair.reference if side is Side.REFERENCE else evaluation.pair.prediction
    return object_facts(
        labels,
        evaluation.outcomes if evaluated else None,
        side,
        row,
        side_name="reference" if side is Side.REFERENCE else "a team",
    )


def test_a_match_tells_partner_and_distances():
    facts = facts_of(Side.REFERENCE, 0)
    assert facts.title == "reference 11 · Round"
    assert facts.verdict == "TP"
    assert facts.figures() == [
        ("Partner", "21 · Round"),
        ("IoU", "0.900"),
        ("HD", "1.0\u2009px (0.5\u2009µm)"),
        ("Area", "100\u2009px"),
    ]


def test_a_card_has_everything_that_is_known():
    assert facts_of(Side.REFERENCE, 1).details() == [
        ("Id", "12"),
        ("Class", "Round"),
        ("Partner class", "Long"),
        ("IoU", "0.900"),
        ("Hausdorff", "1.0\u2009px (0.5\u2009µm)"),
        ("Area", "100\u2009px (25.0\u2009µm²)"),
        ("Centroid", "y 8.5, x 28.5\u2009px"),
    ]
    unmatched = dict(facts_of(Side.REFERENCE, 2, mpp=None).details())
    assert unmatched["Area"] == "120\u2009px"
    assert "Hausdorff" not in unmatched
    assert facts_of(Side.REFERENCE, 0, evaluated=False).details()[0] == ("Id", "11")


def test_an_object_that_is_cut_tells_its_area_before_and_after():
    reference, prediction = np.zeros((2, 40, 40), np.int64)
    reference[10:20, 10:20] = prediction[10:20, 10:20] = 7
    reference[30:34, 30:34] = 9
    ambiguous = np.zeros((40, 40), bool)
    ambiguous[:, :14] = True
    evaluation = evaluate_pair(reference, prediction, ambiguous=ambiguous, mpp=0.5)
    cut, whole = (
        object_facts(
            evaluation.pair.reference,
            evaluation.outcomes,
            Side.REFERENCE,
            row,
            side_name="reference",
            whole_px=int(evaluation.table.reference.area[row]),
        )
        for row in (0, 1)
    )
    details = dict(cut.details())
    assert details["Area"] == "60\u2009px (15.0\u2009µm²)"
    assert details["Uncut area"] == "100\u2009px (25.0\u2009µm²)"
    assert ("Uncut area", "100\u2009px") in cut.figures()
    assert "Uncut area" not in dict(whole.details())


def test_distances_stay_in_pixels_where_the_pixel_size_is_unknown():
    assert ("HD", "1.0\u2009px") in facts_of(Side.REFERENCE, 0, mpp=None).figures()


def test_a_misclassified_object_tells_the_other_class():
    assert facts_of(Side.REFERENCE, 1).verdict == "misclassified: predicted as Long"
    assert facts_of(Side.PREDICTION, 1).verdict == "misclassified: annotated as Round"


def test_a_failure_tells_its_cause():
    facts = facts_of(Side.PREDICTION, 2)
    assert (facts.status, facts.cause) == (Status.FP, Cause.SPURIOUS)
    assert facts.verdict == "FP: spurious"
    assert facts.explanation == "There is no annotated nucleus here."
    # Neither partner nor distance: nothing is cut off in a narrow window for two dashes.
    assert facts.figures() == [("Best IoU", "0.000"), ("Area", "64\u2009px")]


def test_an_ignored_object_has_no_iou():
    facts = facts_of(Side.REFERENCE, 3)
    assert facts.verdict == "ignored"
    assert ("Best IoU", "–") in facts.figures()


def test_without_evaluation_only_identity_is_told():
    facts = facts_of(Side.REFERENCE, 0, evaluated=False)
    assert facts.verdict == "not evaluated"
    assert facts.figures() == []


def test_hover_escapes_names():
    evaluation = four_fates()
    facts = object_facts(
        evaluation.pair.prediction, evaluation.outcomes, Side.PREDICTION, 0, side_name="<b>&"
    )
    assert "&lt;b&gt;&amp; 21" in hover_html(facts)
