"""Figures by the conventions of published codes: against those codes, and slow obvious ones."""

from __future__ import annotations

import json
import re
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import napari_panoptic
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.nuclei.conventions import (
    Ambiguity,
    RegionPlace,
    RegionSums,
    TeamSums,
    region_sums,
    sums_of_pair,
)
from napari_panoptic.nuclei.evaluate import evaluate_pair
from napari_panoptic.nuclei.overlap import overlap_table
from napari_panoptic.questions.conventions import Conventions
from napari_panoptic.questions.engines.detective import FORMULAS, combinations
from napari_panoptic.values.conventions import (
    CONVENTIONS,
    Convention,
    Formula,
    Nothing,
    ObjectScope,
    Pairs,
    figures_of,
)
from napari_panoptic.values.settings import AmbiguousPolicy, EvaluationSettings
from tests.support import conventions_oracle
from tests.support.compare import evaluate_case
from tests.support.examples import examples, seeds
from tests.support.label_cases import CLASS_NAMES, random_pair
from tests.support.paths import SHARED_CASES, needs_shared_cases

COHORT = SHARED_CASES / "monusac"
PUBLISHED = COHORT / "expected_published.json"
QUICK_TEAMS = ("jitter", "tight")
MORE_TEAMS = ("log-seeds", "otsu-watershed")
POLICIES = {"clip": "clip", "keep": "ignored"}
ORGANS = {
    "2Z": "Kidney",
    "DW": "Kidney",
    "IZ": "Kidney",
    "MH": "Kidney",
    "49": "Lung",
    "55": "Lung",
    "A2": "Breast",
    "G9": "Prostate",
}
"""Tissue source site in the name of a TCGA patient -> its organ."""


# --- real regions, with the codes' own figures ------------------------------------------------


@pytest.fixture(scope="module")
def published():
    return json.loads(PUBLISHED.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def gathered():
    """Return (policy, teams) -> their sums over the regions; under clip those of void areas too."""
    cohort, found = open_cohort(COHORT), {}

    def of(policy, teams):
        if (policy, teams) not in found:
            published = ((teams[0], 0.5),) if policy == "clip" else ()
            asked = Conventions(
                teams=teams, settings=EvaluationSettings(ambiguous=policy), published=published
            )
            found[policy, teams] = asked.gather(cohort)
        return found[policy, teams]

    return of


@pytest.fixture(scope="module")
def values(gathered):
    """Return (policy, teams) -> (tissues, team, convention, figure, class) -> value."""
    cohort, found = open_cohort(COHORT), {}
    tissues = {
        "organ": {patient: ORGANS[patient.split("-")[1]] for patient in cohort.patients},
        "patient": {patient: patient for patient in cohort.patients},
        "": {},
    }

    def of(policy, teams):
        if (policy, teams) not in found:
            asked = Conventions(teams=teams, settings=EvaluationSettings(ambiguous=policy))
            found[policy, teams] = {
                (word, row["team"], row["convention"], row["figure"], row["class"]): row["value"]
                for word, tissue_of in tissues.items()
                for row in _rows(asked, cohort, gathered(policy, teams), tissue_of)
            }
        return found[policy, teams]

    return of


def _rows(asked, cohort, gathered, tissue_of):
    """Answer with other tissues, from the sums that were read once."""
    patients = {region.name: region.patient for region in cohort.regions}
    places = [RegionPlace(patients[r], tissue_of.get(patients[r], "")) for r in gathered.regions]
    teams = {
        team: {a: TeamSums(places, own.regions) for a, own in found.items()}
        for team, found in gathered.teams.items()
    }
    sums = type(gathered)(teams, gathered.regions, (), ())
    return asked.answered(cohort, sums).tables[0].frame.to_dict("records")


def expected_of(published, team, policy):
    """Yield what a code gave: tissues, key (convention, figure, class), value, tolerance."""
    codes = {name: own[team] for name, own in published["codes"].items()}
    key = POLICIES[policy]
    hover = codes["hover_net"][key]
    names = {"aji_plus": "aji-plus", "dice2": "dice-2"}
    for name, value in hover["instance"].items():
        yield "", ("hover-net", names.get(name, name), ""), value, 1e-9
    yield "", ("hover-net", "f1-detection", ""), hover["type"]["f1_d"], 1e-9
    yield "", ("hover-net", "type-accuracy", ""), hover["type"]["acc_type"], 1e-9
    for word, value in hover["type"]["f1_type"].items():
        yield "", ("hover-net", "f1", word), value, 1e-9
    conic = codes["conic"][key]["set"]
    yield "", ("conic", "pq", ""), conic["pq"], 1e-9
    yield "", ("conic", "mpq-plus", ""), conic["mpq_plus_4_classes"], 1e-9
    yield "", ("conic", "r2", ""), conic["r2_mean_4_classes"], 1e-9
    for figure, source in (("pq-plus", "pq_plus_per_class"), ("r2", "r2_per_class")):
        for word, value in conic[source].items():
            yield "", ("conic", figure, word), value, 1e-9
    pannuke = codes["pannuke"][key]
    of_organs = pannuke["tissues_are_organs"]
    for tissues, own in (
        ("organ", of_organs),
        ("patient", pannuke["tissues_are_patients"]),
        ("", of_organs["mean_over_images_without_tissues"]),
    ):
        yield tissues, ("pannuke", "bpq", ""), own["bPQ"], 1e-9
        yield tissues, ("pannuke", "mpq", ""), own["mPQ"], 1e-9
    for word, value in of_organs["class_PQ"].items():
        if value is not None:
            yield "organ", ("pannuke", "pq", word), value, 1e-9
    cellvit = codes["cellvit"][key]["set"]
    for figure, source in (("bdq", "bDQ"), ("bsq", "bSQ"), ("bpq", "bPQ"), ("mpq", "mPQ")):
        yield "organ", ("cellvit", figure, ""), cellvit[source], 1e-9
    for figure, source in (("bpq", "bPQ"), ("mpq", "mPQ")):
        value = cellvit[f"paper_{source}_mean_over_tissues"]
        yield "organ", ("cellvit-paper", figure, ""), value, 1e-9
    for name, source in (("stardist", "pooled"), ("stardist-by-image", "by_image")):
        own = codes["stardist"][key][source]
        for figure in [own.name for own in CONVENTIONS[name]]:
            value = own["panoptic_quality" if figure == "pq" else figure.replace("-", "_")]
            yield "", (name, figure, ""), value, 1e-6
    panoptic = codes["panopticapi"][key]
    for figure, source in (("pq", "pq"), ("sq", "sq"), ("dq", "rq")):
        yield "", ("panopticapi", figure, ""), panoptic["Things"][source], 1e-9
        for word, own in panoptic["per_class"].items():
            yield "", ("panopticapi", figure, word), own[source], 1e-9
    aji = codes["monuseg_aji"][key]["set"]["mean_aji_v1_0"]
    yield "", ("monuseg", "aji", ""), aji, 1e-9
    if policy == "clip":
        fcis, cellseg = codes["fcis"]["clip"]["set"], codes["cellseg_metrics"]["clip"]["set"]
        for figure, source in (("aji", "Aji"), ("pq", "PQ")):
            yield "", ("fcis-by-image", figure, ""), fcis[f"imw{source}"], 2e-7
            yield "", ("fcis-pooled", figure, ""), fcis[f"b{source}"], 2e-7
        for figure in ("pq", "sq", "dq", "aji", "dice-2"):
            yield "", ("cellseg-metrics", figure, ""), cellseg[figure.replace("-", "")], 1e-10


@needs_shared_cases
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "teams", [QUICK_TEAMS, pytest.param(MORE_TEAMS, marks=pytest.mark.long)], ids=" ".join
)
def test_figures_of_ten_published_codes(values, published, teams, policy):
    found = values(policy, teams)
    for team in teams:
        n = 0
        for tissues, key, value, tolerance in expected_of(published, team, policy):
            assert found[tissues, team, *key] == pytest.approx(value, rel=tolerance), (team, key)
            n += 1
        assert n == (79 if policy == "clip" else 70)


@needs_shared_cases
@pytest.mark.parametrize(
    ("ambiguity", "source"),
    [
        (Ambiguity.VOID, "ambiguous area is VOID in the reference"),
        (Ambiguity.BACKGROUND, "ignored, background is VOID"),
        (Ambiguity.CLIP_BACKGROUND, "clip, background is VOID"),
    ],
)
def test_areas_that_are_void_as_in_panopticapi(gathered, published, ambiguity, source):
    found = gathered("clip", QUICK_TEAMS)
    for team in QUICK_TEAMS:
        own = published["codes"]["panopticapi"][team][source]
        for figure in figures_of("panopticapi"):
            value = found.teams[team][ambiguity].figure(figure.formula, figure.convention).value
            expected = own["Things"]["rq" if figure.name == "dq" else figure.name]
            assert value == pytest.approx(expected, rel=1e-9)


# --- small cases that tell the codes apart ----------------------------------------------------


OUTPUTS = {
    "hover_net PQ": [("hover-net", "pq", 1)],
    "hover_net AJI": [("hover-net", "aji", 1)],
    "hover_net AJI+": [("hover-net", "aji-plus", 1)],
    "hover_net Dice 1": [("hover-net", "dice", 1)],
    "hover_net Dice 2": [("hover-net", "dice-2", 1)],
    "CoNIC PQ": [("conic", "pq", 1)],
    "CoNIC mPQ+ (6 classes)": [("conic", "mpq-plus", 4 / 6)],
    "PanNuke bPQ": [("pannuke", "bpq", 1)],
    "PanNuke mPQ": [("pannuke", "mpq", 1)],
    "CellViT bPQ": [("cellvit", "bpq", 1)],
    "CellViT mPQ": [("cellvit", "mpq", 1)],
    "stardist PQ / f1": [("stardist", "pq", 1), ("stardist", "f1", 1)],
    "panopticapi Things PQ, background stuff": [("panopticapi", "pq", 1)],
    "MoNuSeg AJI v1_0": [("monuseg", "aji", 1)],
    "FCIS imwAji / imwPQ": [("fcis-by-image", "aji", 1), ("fcis-by-image", "pq", 1)],
    "cellseg-metrics pq / aji": [("cellseg-metrics", "pq", 1), ("cellseg-metrics", "aji", 1)],
}
"""Name of an output -> convention, figure, and what the figure is multiplied by."""
NOT_OFFERED = ("full image", "void")
"""Cases of mistakes that are no choices, and of void areas, which have a test of their own."""
CASES = (
    *("half", "empty reference", "empty prediction", "both empty", "merger", "reused or not"),
    *("no overlap", "largest sum", "two halves", "gap in ids", "misclassified", "absent class"),
    *("pieces", "centroids", "overlap or IoU"),
)


def conventions_of(case):
    """Return (convention, figure, class) -> value of a small case."""
    sides = [
        np.array([[int(c) for c in line] for line in case[side]])
        for side in ("reference", "prediction")
    ]
    classes = []
    for side, labels in zip(("reference_class", "prediction_class"), sides, strict=True):
        known = case.get(side) or {str(id_): 1 for id_ in np.unique(labels) if id_}
        names = {1: "Epithelial", 2: "Lymphocyte"}
        classes.append({int(id_): names[number] for id_, number in known.items()})
    evaluation = evaluate_pair(*sides, reference_classes=classes[0], prediction_classes=classes[1])
    rows = evaluation.conventions().to_dict("records")
    return {(row["convention"], row["figure"], row["class"]): row["value"] for row in rows}


@needs_shared_cases
@pytest.mark.parametrize("name", CASES)
def test_cases_that_tell_codes_apart(published, name):
    case = published["distinguishing"][name]
    found = conventions_of(case)
    for output, figures in OUTPUTS.items():
        for word, (convention, figure, factor) in zip(
            case["out"][output].split(" / "), figures, strict=True
        ):
            value = found[convention, figure, ""] * factor
            if re.fullmatch(r"[0-9.e-]+", word):
                assert value == pytest.approx(float(word), rel=1e-5, abs=1e-9), output
            else:  # skipped, nan or an error
                assert np.isnan(value), output


@needs_shared_cases
@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith(("both", "empty"))])
def test_types_by_centroids(published, name):
    """Where a side is empty, the code adds a phantom point, which is not offered."""
    case = published["distinguishing"][name]
    found = conventions_of(case)
    said = case["out"]["hover_net type mode"]
    keys = {"F1d": ("f1-detection", ""), "accuracy": ("type-accuracy", "")}
    for part in said.split(", "):
        *words, value = part.split()
        key = keys.get(words[0]) or ("f1", words[-1])
        assert found["hover-net", *key] == pytest.approx(float(value), rel=1e-5), part


@needs_shared_cases
def test_every_case_is_a_test(published):
    assert {*published["distinguishing"]} - {*CASES} - {*NOT_OFFERED} == set()


# --- slow, obvious ones -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", seeds(20))
@pytest.mark.parametrize("policy", [str(policy) for policy in AmbiguousPolicy])
def test_every_figure_under_every_policy_against_loops_over_pixels(policy, seed):
    case = random_pair(np.random.default_rng(seed))
    evaluation = evaluate_case(case, ambiguous=policy)
    pair = evaluation.pair
    sides = [
        (image, {id_: classes[id_] for id_ in labels.ids.tolist()})
        for image, classes, labels in (
            (case.reference, case.reference_classes, pair.reference),
            (case.prediction, case.prediction_classes, pair.prediction),
        )
    ]
    region = conventions_oracle.Region(sides, case.ambiguous, CLASS_NAMES, policy)
    rows = evaluation.conventions().to_dict("records")
    found = {(row["convention"], row["figure"], row["class"]): row["value"] for row in rows}
    expected = conventions_oracle.figures(region, CONVENTIONS)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)
    usual = found["disentangled", "pq", ""]
    assert usual == pytest.approx(evaluation.metrics.pq, rel=1e-12, nan_ok=True)


def blocks(*places):
    """Draw rectangles (top, bottom, left, right), numbered from 1, on 40 x 40 pixels."""
    image = np.zeros((40, 40), int)
    for id_, (top, bottom, left, right) in enumerate(places, start=1):
        image[top:bottom, left:right] = id_
    return image


GOOD = (2, 10, 2, 10)
UNDER_MAJORITY = {
    # A class whose only nucleus is ignored.
    "ignored class": ([(GOOD, "A"), ((25, 33, 5, 13), "B")], [(GOOD, "A")], 1.0),
    # A misclassified pair that is mostly in the area, but matched: an FN and an FP.
    "misclassified inside": (
        [(GOOD, "A"), ((16, 30, 20, 28), "A"), ((2, 8, 20, 26), "B")],
        [(GOOD, "A"), ((16, 30, 20, 28), "B"), ((2, 8, 20, 26), "B")],
        2 / 3,
    ),
}


@pytest.mark.parametrize("name", UNDER_MAJORITY)
def test_under_majority_what_the_evaluation_ignores_is_ignored(name):
    *sides, pq = UNDER_MAJORITY[name]
    area = np.zeros((40, 40), bool)
    area[20:] = True
    evaluation = evaluate_pair(
        *(blocks(*(place for place, _ in side)) for side in sides),
        reference_classes={k: cls for k, (_, cls) in enumerate(sides[0], start=1)},
        prediction_classes={k: cls for k, (_, cls) in enumerate(sides[1], start=1)},
        ambiguous=area,
        class_names=("A", "B"),
        settings=EvaluationSettings(ambiguous="majority"),
    )
    rows = evaluation.conventions()
    values = rows[rows["class"] == ""].set_index(["convention", "figure"])["value"]
    assert evaluation.metrics.pq == pytest.approx(pq)
    for convention, figure in (("disentangled", "pq"), ("pannuke", "mpq"), ("panopticapi", "pq")):
        assert values[convention, figure] == pytest.approx(pq, abs=1e-5), convention


def images(side):
    return arrays(np.int64, (side, side), elements=st.integers(0, 4))


def _iou(a, b):
    return (a & b).sum() / (a | b).sum()


def _objects(labels):
    return [labels == id_ for id_ in np.unique(labels) if id_]


def slow_figures(reference, prediction):
    """Return figures of two label images of one class, by loops over all objects."""
    own, other = _objects(reference), _objects(prediction)
    iou = np.array([[_iou(a, b) for b in other] for a in own]).reshape(len(own), len(other))
    found = {}
    tp = int((iou > 0.5).sum())
    weight = (len(own) + len(other)) / 2
    found["pq"] = iou[iou > 0.5].sum() / weight if weight else None
    # AJI: the best partner of each annotated object, whether or not it is taken.
    shared = union = 0
    used = set()
    for k, a in enumerate(own):
        best = int(np.argmax(iou[k])) if len(other) else -1
        if best >= 0 and iou[k, best] > 0:
            shared += (a & other[best]).sum()
            union += (a | other[best]).sum()
            used.add(best)
        else:
            union += a.sum()
    union += sum(b.sum() for k, b in enumerate(other) if k not in used)
    found["aji"] = shared / union if union else None
    # One to one: every way to give annotated objects a prediction, or none.
    padded = np.zeros((len(own), len(other) + len(own)))
    padded[:, : len(other)] = iou
    ways = permutations(range(padded.shape[1]), len(own))
    best_sum = max((sum(padded[k, j] for k, j in enumerate(way)) for way in ways), default=0.0)
    found["largest sum"] = best_sum
    most = [(0, 0.0)]
    for way in permutations(range(padded.shape[1]), len(own)):
        pairs = [padded[k, j] for k, j in enumerate(way) if padded[k, j] >= 0.5]
        most.append((len(pairs), sum(pairs)))
    n, total = max(most)
    found["stardist"] = total / weight if weight else None
    found["f1"] = 2 * n / (len(own) + len(other)) if weight else None
    pixels = (reference > 0).sum() + (prediction > 0).sum()
    both = ((reference > 0) & (prediction > 0)).sum()
    found["dice"] = 2 * both / pixels if pixels else None
    pairs = [(k, j) for k in range(len(own)) for j in range(len(other)) if iou[k, j] > 0]
    areas = sum(own[k].sum() + other[j].sum() for k, j in pairs)
    overlap = sum((own[k] & other[j]).sum() for k, j in pairs)
    found["dice-2"] = 2 * overlap / areas if areas else None
    found["tp"] = tp
    return found


@settings(max_examples=examples(60), deadline=None)
@given(images(5), images(5))
def test_slow_figures_of_one_class(reference, prediction):
    slow = slow_figures(reference, prediction)
    names = ({int(i): "Epithelial" for i in np.unique(own) if i} for own in (reference, prediction))
    evaluation = evaluate_pair(
        reference,
        prediction,
        **dict(zip(("reference_classes", "prediction_classes"), names, strict=True)),
    )
    rows = evaluation.conventions().to_dict("records")
    found = {(r["convention"], r["figure"]): r["value"] for r in rows if r["class"] == ""}
    for key, name in (
        (("disentangled", "pq"), "pq"),
        (("monusac-2020-corrected", "pq"), "pq"),
        (("monuseg", "aji"), "aji"),
        (("hover-net", "dice"), "dice"),
        (("hover-net", "dice-2"), "dice-2"),
    ):
        if slow[name] is None:
            assert np.isnan(found[key])
        else:
            assert found[key] == pytest.approx(slow[name], abs=1e-12)
    assert found["stardist", "pq"] == pytest.approx(slow["stardist"] or 0.0, abs=1e-12)
    assert found["stardist", "f1"] == pytest.approx(slow["f1"] or 0.0, abs=1e-12)
    sums = sums_of_pair(evaluation.pair, evaluation.table, Ambiguity.KEEP)
    assert sums.sums["together one-to-one"][0, 5] == pytest.approx(slow["largest sum"], abs=1e-12)


def pair_of(reference, prediction, n_classes, seed):
    rng = np.random.default_rng(seed)
    names = tuple("ABCD"[:n_classes])
    classes = [
        {int(i): names[rng.integers(n_classes)] for i in np.unique(own) if i}
        for own in (reference, prediction)
    ]
    void = rng.random(reference.shape) < 0.2
    return evaluate_pair(
        reference,
        prediction,
        reference_classes=classes[0],
        prediction_classes=classes[1],
        ambiguous=void,
        class_names=names,
    )


def sums_of(evaluation, ambiguity):
    return sums_of_pair(evaluation.pair, evaluation.table, ambiguity)


def every_figure(places, sums):
    own = TeamSums(places, sums)
    return np.array(
        [
            own.figure(figure.formula, figure.convention).value
            for figures in CONVENTIONS.values()
            for figure in figures
            if figure.of_all
        ]
    )


@settings(max_examples=examples(20), deadline=None)
@given(images(6), images(6), st.integers(0, 10**6), st.sampled_from(list(Ambiguity)))
def test_ids_do_not_matter(reference, prediction, seed, ambiguity):
    """But for ties of IoU in AJI, where the smallest id wins, and the challenge's error."""
    one = pair_of(reference, prediction, 2, seed)
    shift = np.where(reference > 0, reference + 7, 0), np.where(prediction > 0, prediction * 3, 0)
    other = pair_of(*shift, 2, seed)
    for key, value in sums_of(one, ambiguity).sums.items():
        assert sums_of(other, ambiguity).sums[key] == pytest.approx(value, abs=1e-9), key


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.tuples(images(5), images(5)), min_size=2, max_size=4), st.integers(0, 10**6))
def test_the_order_of_regions_does_not_matter(pairs, seed):
    found = [sums_of(pair_of(*pair, 2, seed), Ambiguity.CLIP) for pair in pairs]
    places = [RegionPlace(f"P{k % 2}", f"T{k % 2}", f"F{k % 3}") for k in range(len(found))]
    one = every_figure(places, found)
    other = every_figure(places[::-1], found[::-1])
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.tuples(images(5), images(5)), min_size=1, max_size=3), st.integers(0, 10**6))
def test_empty_regions_count_what_the_convention_says(pairs, seed):
    """Left out, added as nothing, 0, or an error: the mean changes by that alone."""
    found = [sums_of(pair_of(*pair, 2, seed), Ambiguity.KEEP) for pair in pairs]
    nothing = np.zeros((5, 5), int)
    empty = sums_of(pair_of(nothing, nothing, 2, seed), Ambiguity.KEEP)
    n = len(found)
    one = TeamSums([RegionPlace("P")] * n, found)
    other = TeamSums([RegionPlace("P")] * (n + 2), [*found, empty, empty])
    for name, figures in CONVENTIONS.items():
        for figure in figures:
            convention = figure.convention
            if not figure.of_all or figure.formula in (Formula.R2, Formula.TYPE_ACCURACY):
                continue
            before, after = (own.figure(figure.formula, convention).value for own in (one, other))
            is_mean = convention.mean_over.value == "regions"
            if is_mean and convention.nothing.value.startswith("error"):
                assert np.isnan(after), (name, figure.name)
            elif is_mean and convention.nothing.value == "0":
                assert after == pytest.approx(before * n / (n + 2), abs=1e-12), name
            elif is_mean and convention.nothing is Nothing.ONE:
                assert after == pytest.approx((before * n + 2) / (n + 2), abs=1e-12), name
            else:
                assert after == pytest.approx(before, abs=1e-12, nan_ok=True), (name, figure.name)


@pytest.mark.parametrize(("first", "aji"), [(1, 2 / 17), (2, 3 / 16)])
def test_of_predictions_with_the_same_iou_aji_takes_the_smallest_id(first, aji):
    """One shares 2 of its 4 px with a nucleus of 6 px (2/8), the other 3 of its 9 (3/12)."""
    reference, prediction = np.zeros((2, 8, 30), int)
    reference[3, 10:16] = 1
    prediction[3, 8:12], prediction[3, 13:22] = first, 3 - first
    found = evaluate_pair(
        reference, prediction, reference_classes={1: "N"}, prediction_classes={1: "N", 2: "N"}
    ).conventions()
    values = found.set_index(["convention", "figure", "class"])["value"]
    assert values["monuseg", "aji", ""] == pytest.approx(aji, abs=1e-12)


def test_a_region_with_too_many_objects_for_centroids_has_the_other_figures(monkeypatch):
    monkeypatch.setattr("napari_panoptic.nuclei.conventions.MOST_DISTANCES", 3)
    labels = np.zeros((9, 9), int)
    labels[1:3, 1:3], labels[5:7, 5:7] = 1, 2
    classes = {1: "Epithelial", 2: "Lymphocyte"}
    found = evaluate_pair(
        labels, labels, reference_classes=classes, prediction_classes=classes
    ).conventions()
    values = found.set_index(["convention", "figure", "class"])["value"]
    assert np.isnan(values["hover-net", "f1-detection", ""])
    assert values["hover-net", "aji", ""] == 1.0


@pytest.mark.parametrize("policy", [str(policy) for policy in AmbiguousPolicy])
def test_the_usual_figure_is_that_of_the_evaluation(nuclei_sample, policy):
    cohort = napari_panoptic.open_cohort(nuclei_sample)
    settings = EvaluationSettings(ambiguous=policy, distances=False)
    frame = cohort.conventions(teams=("careful",), convention=("disentangled",), settings=settings)
    usual = cohort.evaluate("careful", settings=settings).teams["pq_mean"][0]
    (value,) = frame.loc[frame["class"] == "", "value"]
    assert value == pytest.approx(usual, rel=1e-12)


def test_the_cohort_gives_what_its_pairs_give(nuclei_sample):
    """A folder with one region of one patient, and the same arrays in Python."""
    cohort = napari_panoptic.open_cohort(nuclei_sample)
    frame = cohort.conventions(teams=("careful",))
    assert list(frame.columns[:6]) == ["team", "convention", "figure", "class", "value", "units"]
    assert list(frame.columns[6:]) == [
        *("objects", "pairs", "ambiguous", "added_over"),
        *("mean_over", "classes", "nothing", "constant"),
    ]
    assert set(frame["convention"]) == set(CONVENTIONS)
    usual = cohort.evaluate("careful").teams["pq_mean"][0]
    own = frame[(frame["convention"] == "disentangled") & (frame["figure"] == "pq")]
    assert own["value"].item() == pytest.approx(usual, rel=1e-12)


def test_sums_of_a_table_do_not_need_pixels():
    reference = np.kron(np.arange(1, 10).reshape(3, 3), np.ones((4, 4), int))
    evaluation = pair_of(reference, np.roll(reference, 1, 1), 3, 1)
    sides = evaluation.pair.reference.class_index, evaluation.pair.prediction.class_index
    found = region_sums(overlap_table(evaluation.pair), sides, 3, Ambiguity.CLIP)
    assert isinstance(found, RegionSums)
    whole = sums_of(evaluation, Ambiguity.CLIP)
    for key, value in found.sums.items():
        assert whole.sums[key].tolist() == value.tolist()


def _without(number, places, sums):
    kept = [k for k in range(len(sums)) if k != number]
    return TeamSums([places[k] for k in kept], [sums[k] for k in kept])


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(st.tuples(images(5), images(5)), min_size=2, max_size=4),
    st.integers(0, 10**6),
    st.sampled_from(list(FORMULAS)),
)
def test_a_figure_without_each_region_is_that_of_the_other_regions(pairs, seed, name):
    sums = [sums_of(pair_of(*pair, 2, seed), Ambiguity.CLIP) for pair in pairs]
    places = [RegionPlace(f"P{k % 3}", f"T{k % 2}", f"F{k % 2}") for k in range(len(sums))]
    own, formula = TeamSums(places, sums), FORMULAS[name]
    rests = [_without(k, places, sums) for k in range(len(sums))]
    errors = [
        Convention(ObjectScope.BY_CLASS, Pairs.ABOVE_HALF, nothing=nothing)
        for nothing in (Nothing.ERROR, Nothing.ERROR_PREDICTION)
    ]
    some = list(combinations(name, own.levels))[seed % 29 :: 29]
    for convention in (*some, *errors):
        expected = [rest.figure(formula, convention).value for rest in rests]
        found = own.without_each(formula, convention)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=str(convention))
