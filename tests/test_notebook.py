"""The Python interface: arrays and cohorts in, tables out, without napari and Qt."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import napari_panoptic as npan
from napari_panoptic.cli.main import main
from napari_panoptic.common.errors import CohortError, LabelError, PanopticError
from napari_panoptic.io.cohorts.comparison import Labels, LabelsComparison, PointsComparison
from napari_panoptic.io.cohorts.detections import open_detection_cohort
from napari_panoptic.nuclei.evaluate import evaluate_pair as engine
from tests.support.paths import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb"))
BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"napari", "qtpy", "PyQt6", "PySide6", "magicgui", "superqt"}:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, Blocker())
"""


def pair() -> tuple[np.ndarray, np.ndarray]:
    truth = np.zeros((40, 60), int)
    truth[2:12, 2:12] = 1
    truth[2:12, 20:30] = 2
    truth[20:35, 5:25] = 7
    guess = np.roll(np.where(truth == 7, 0, truth), 1, axis=1)
    guess[20:35, 40:50] = 9
    return truth, guess


def run_without_napari(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKED + code], capture_output=True, text=True, timeout=300
    )


def test_the_result_equals_that_of_the_engine() -> None:
    truth, guess = pair()
    result = npan.evaluate_pair(truth, guess)
    expected = engine(
        truth,
        guess,
        reference_classes=dict.fromkeys((1, 2, 7), "Nucleus"),
        prediction_classes=dict.fromkeys((1, 2, 9), "Nucleus"),
    )
    pd.testing.assert_frame_equal(result.objects, expected.objects)
    assert dict(result.metrics) == dict(expected.metrics)
    pd.testing.assert_frame_equal(result.confusion, expected.confusion)


def test_a_result_is_shown_with_metrics_and_the_worst_crops() -> None:
    truth, guess = pair()
    image = np.full((*truth.shape, 3), 200, np.uint8)
    shown = npan.evaluate_pair(truth, guess, image=image)._repr_html_()
    assert "<table" in shown
    assert shown.count("<img") == 2  # one FN, one FP
    assert "FN missed Nucleus 7" in shown
    assert "FP spurious Nucleus 9" in shown
    assert "<script" not in shown


def test_printed_results_are_short() -> None:
    """`print` wrote every array."""
    truth, guess = pair()
    result = npan.evaluate_pair(truth, guess, scores={1: 0.9, 2: 0.8, 9: 0.2})
    text = repr(result)
    pq = f"{result.metrics.pq:.3f}"
    assert text == f"<PairResult: PQ {pq}, 1 FN, 1 FP, 4 TP>"
    compared = npan.compare(truth, {"a": guess, "b": truth})
    assert repr(compared) == f"<Comparison: a PQ {pq}, b PQ 1.000>"
    at = result.at_threshold(0.5)
    assert repr(at) == f"<Thresholded at 0.5: PQ {at.metrics.pq:.3f}, 1 prediction removed>"
    assert repr(result.scores) == "<CohortScores: 3 predictions in 1 region>"
    empty = npan.evaluate_pair(0 * truth, 0 * truth)
    assert repr(empty) == "<PairResult: PQ nan, no object>"


def test_printed_results_of_cohorts_are_short(nuclei_sample: Path) -> None:
    cohort = npan.open_cohort(nuclei_sample)
    texts = (
        repr(cohort.evaluate(settings=npan.EvaluationSettings(distances=False))),
        repr(cohort.ask("causes", team="careful")),
        repr(cohort.scores("careful")),
    )
    for text, begin in zip(
        texts, ("CohortResult: ", "CohortAnswer to causes: ", "CohortScores of"), strict=True
    ):
        assert text.startswith(f"<{begin}")
        assert len(text) < 300


def test_names_of_classes_cannot_bring_markup_in() -> None:
    truth, guess = pair()
    shown = npan.evaluate_pair(
        truth, guess, reference_classes="<b>x</b>", prediction_classes="<b>x</b>"
    )._repr_html_()
    assert "<b>x" not in shown


def test_a_pair_without_failures_says_so() -> None:
    truth, _ = pair()
    result = npan.evaluate_pair(truth, truth)
    assert result.worst().empty
    assert "No failures" in result._repr_html_()


def test_several_predictions_are_compared() -> None:
    truth, guess = pair()
    both = npan.compare(truth, {"v1": guess, "v2": truth})
    assert both.metrics.loc["v2", "pq"] == 1
    assert both.metrics.loc["v1", "pq"] == npan.evaluate_pair(truth, guess).metrics.pq
    assert set(both.objects["team"]) == {"v1", "v2"}
    assert both["v1"].worst()["id"].tolist() == [7, 9]
    assert "v1" in both._repr_html_()


def test_arrays_that_do_not_fit_are_named() -> None:
    truth, guess = pair()
    with pytest.raises(LabelError, match="60 x 39 px"):
        npan.evaluate_pair(truth, guess[:-1])
    with pytest.raises(LabelError, match="the image has the shape"):
        npan.evaluate_pair(truth, guess, image=np.zeros((3, 3)))
    with pytest.raises(PanopticError, match="at least one prediction"):
        npan.compare(truth, {})


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize(
    ("array", "problem"),
    [
        (np.zeros((3, 3), complex), "must hold whole numbers, found type complex128"),
        (np.full((3, 3), "a"), "must hold whole numbers, found type <U1"),
        (np.zeros((3, 3), "datetime64[s]"), "must hold whole numbers, found type datetime64"),
        (np.zeros((3, 3), "timedelta64[s]"), "must hold whole numbers, found type timedelta64"),
        (np.full((3, 3), None), "must hold whole numbers, found type object"),
        (np.full((3, 3), np.inf), "must hold whole numbers, found type float64"),
        (None, r"must be a 2-D array \(y, x\), found shape \(\)"),
        ([[1, 2], [1]], r"must be an array \(y, x\), found: .*inhomogeneous"),
        (np.full((3, 3), 2**63, np.uint64), "holds ids above 2\\^63"),
        (np.array([[200000], [0], [-1]], np.int32), "must not hold negative ids, found -1"),
        (np.array([[2**40], [0], [-1]]), "must not hold negative ids, found -1"),
        (np.ma.masked_equal([[1, 2, 2]], 2), "is a masked array"),
    ],
)
def test_arrays_without_ids_are_refused_in_words(array, problem: str, position: int) -> None:
    arrays = [np.zeros((3, 3), int)] * 2
    arrays[position] = array
    side = ("reference", "prediction")[position]
    with pytest.raises(LabelError, match=f"the {side} {problem}"):
        npan.evaluate_pair(*arrays)
    with pytest.raises(LabelError, match=f"the {side} {problem}"):
        npan.evaluate_pair(*arrays, reference_classes={1: "A"}, prediction_classes={1: "A"})


@pytest.mark.parametrize("mpp", [0, -0.25, float("nan"), float("inf"), "0.25"])
def test_pixels_must_have_a_size(mpp) -> None:
    truth, guess = pair()
    for evaluated in (
        lambda: npan.evaluate_pair(truth, guess, mpp=mpp),
        lambda: npan.compare(truth, {"a": guess}, mpp=mpp),
        lambda: LabelsComparison(Labels(truth), {"a": Labels(guess)}, mpp=mpp),
    ):
        with pytest.raises(LabelError, match=f"must be a positive number, found {mpp!r}"):
            evaluated()


@pytest.mark.parametrize(
    ("mask", "problem"),
    [
        (np.ma.masked_equal(np.eye(3), 0), "is a masked array"),
        (np.full((3, 3), np.nan), "found NaN"),
        (np.full((3, 3), "a"), "found type <U1"),
    ],
)
def test_what_is_no_ambiguous_mask_is_refused(mask, problem: str) -> None:
    with pytest.raises(LabelError, match=f"ambiguous mask .*{problem}"):
        npan.evaluate_pair(np.eye(3, dtype=int), np.eye(3, dtype=int), ambiguous=mask)


def test_masked_arrays_that_mask_nothing_are_arrays() -> None:
    truth, guess = pair()
    found = npan.evaluate_pair(np.ma.masked_equal(truth, -1), np.ma.array(guess))
    assert dict(found.metrics) == dict(npan.evaluate_pair(truth, guess).metrics)


def test_a_boolean_prediction_has_the_objects_of_a_binary_file(tmp_path: Path) -> None:
    truth, _ = pair()
    mask = truth > 0
    found = npan.evaluate_pair(truth, mask)
    assert dict(found.metrics)["pq"] == 1
    message = "the prediction is boolean: its 3 connected components became the objects"
    assert found.findings["message"].tolist() == [message]
    assert message in found._repr_html_()
    both = npan.compare(truth, {"a": truth, "b": mask})
    assert both.findings[["team", "message"]].to_numpy().tolist() == [["b", message]]
    files = [tmp_path / "truth.npy", tmp_path / "mask.npy"]
    for file, array in zip(files, (truth, mask), strict=True):
        np.save(file, array)
    arguments = ["--reference", files[0], "--prediction", files[1], "-o", tmp_path / "out"]
    assert main(["evaluate", *map(str, arguments)]) == 0
    objects = pd.read_csv(tmp_path / "out" / "objects.csv")
    assert objects["status"].tolist() == found.objects["status"].tolist() == ["TP"] * 6
    assert objects["id"].tolist() == found.objects["id"].tolist()
    as_numbers = npan.evaluate_pair(truth, mask.astype(int))
    assert len(as_numbers.pair.prediction) == 1
    assert as_numbers.findings.empty
    assert npan.evaluate_pair(mask[:15, :15], mask[:15, :15]).findings.empty


def test_an_array_of_0_and_255_is_a_mask_unless_its_classes_name_255(tmp_path: Path) -> None:
    truth, _ = pair()
    mask = np.where(truth > 0, 255, 0).astype(np.uint8)
    found = npan.evaluate_pair(truth, mask, prediction_classes="Nucleus")
    assert dict(found.metrics)["pq"] == 1
    (message,) = found.findings["message"]
    assert "its 3 connected components became the objects" in message
    assert "name the class of 255" in message
    files = [tmp_path / "truth.npy", tmp_path / "mask.npy"]
    for file, array in zip(files, (truth, mask), strict=True):
        np.save(file, array)
    arguments = ["--reference", files[0], "--prediction", files[1], "-o", tmp_path / "out"]
    assert main(["evaluate", *map(str, arguments)]) == 0
    objects = pd.read_csv(tmp_path / "out" / "objects.csv")
    assert objects["id"].tolist() == found.objects["id"].tolist()
    named = npan.evaluate_pair(mask, mask, reference_classes={255: "A"}, prediction_classes="A")
    assert named.pair.reference.ids.tolist() == [255]
    assert named.pair.prediction.ids.tolist() == [1, 2, 3]
    # One piece keeps its id, and so does every other number.
    for array in (mask[:15, :15], np.where(mask > 0, 254, 0), mask - (truth == 1)):
        own = npan.evaluate_pair(array, array)
        assert own.findings.empty
        assert set(own.pair.reference.ids.tolist()) == set(np.unique(array[array > 0]).tolist())


def test_scores_that_are_no_numbers_are_refused() -> None:
    labels = np.array([[1, 0, 2]])
    for scores in ({1: "x"}, {None: 0.5}, ["x", "y"], {float("inf"): 0.5}, [1j, 1j]):
        with pytest.raises(LabelError, match="expected scores as"):
            npan.evaluate_pair(labels, labels, scores=scores)
    masked = np.ma.masked_equal([0.5, 0.25], 0.25)
    found = npan.evaluate_pair(labels, labels, scores=masked).outcomes.prediction.score
    np.testing.assert_array_equal(found, [0.5, np.nan])


def test_scores_belong_to_ids() -> None:
    labels = np.array([[2, 2, 0, 5, 5, 0, 7]])
    for scores, wanted in (
        ({5: 0.5, 2: 0.25, 9: 1.0}, [0.25, 0.5, np.nan]),
        ([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]),
        (
            np.arange(1, 8) / 8,
            [2 / 8, 5 / 8, 7 / 8],
        ),  # as StarDist has them, also of hidden objects
    ):
        found = npan.compare(labels, {"a": labels, "b": labels}, scores={"b": scores})
        np.testing.assert_array_equal(found["b"].outcomes.prediction.score, wanted)
        assert np.isnan(found["a"].outcomes.prediction.score).all()
    with pytest.raises(LabelError, match="one score for each of the 3 predicted objects"):
        npan.evaluate_pair(labels, labels, scores=[0.5, 0.5])


def test_a_cohort_has_the_tables_of_the_command(small_folder: Path, tmp_path: Path) -> None:
    cohort = npan.open_cohort(small_folder)
    assert cohort.teams == ["alpha", "beta"]
    assert len(cohort.regions) == 5
    assert cohort.regions["annotated"].all()
    result = cohort.evaluate()
    assert main(["evaluate", str(small_folder), "-o", str(tmp_path / "out")]) == 0
    for name in ("objects", "regions", "patients", "patients_by_class", "teams", "confusion"):
        text = io.StringIO((tmp_path / "out" / f"{name}.csv").read_text(encoding="utf-8"))
        written = pd.read_csv(text)
        table = getattr(result, name)
        assert list(table.columns)[: len(written.columns)] == list(written.columns), name
        table = table[list(written.columns)]
        own = pd.read_csv(io.StringIO(table.to_csv(index=False)))
        key = [c for c in ("team", "patient", "region", "side", "id") if c in written]
        pd.testing.assert_frame_equal(
            own.sort_values(key, ignore_index=True, kind="stable"),
            written.sort_values(key, ignore_index=True, kind="stable"),
        )


def test_one_team_of_a_cohort(small_folder: Path) -> None:
    result = npan.open_cohort(small_folder).evaluate("beta")
    assert set(result.objects["team"]) == {"beta"}
    with pytest.raises(CohortError, match="alfa"):
        npan.open_cohort(small_folder).evaluate("alfa")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebooks_of_the_documentation_run(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    names: dict[str, object] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "notebooks are kept without outputs"
            exec("".join(cell["source"]), names)  # noqa: S102 - our own documentation


def test_there_are_three_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["cohort", "sweep", "two-arrays"]


def test_the_core_works_where_napari_and_qt_are_absent(tmp_path: Path, small_folder: Path) -> None:
    done = run_without_napari(
        "import numpy as np, napari_panoptic as npan\n"
        "from napari_panoptic.cli.main import main\n"
        "a = np.zeros((9, 9), int); a[2:5, 2:5] = 1\n"
        "assert npan.evaluate_pair(a, a).metrics.pq == 1\n"
        f"assert len(npan.open_cohort({str(small_folder)!r}).evaluate('beta').teams) == 1\n"
        f"sys.exit(main(['evaluate', {str(small_folder)!r}, '-o', {str(tmp_path / 'out')!r}]))\n"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "teams.csv").is_file()


def test_a_command_that_needs_the_window_says_what_to_install(small_folder: Path) -> None:
    done = run_without_napari(
        "import os; os.environ['DISPLAY'] = ':99'\n"
        "from napari_panoptic.cli.main import main\n"
        f"sys.exit(main(['view', {str(small_folder)!r}]))\n"
    )
    assert done.returncode == 1
    assert 'pip install "napari-panoptic[pyqt6]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_importing_the_package_loads_neither_napari_nor_qt() -> None:
    code = (
        "import sys, napari_panoptic as npan\n"
        "npan.evaluate_pair, npan.compare, npan.open_cohort, npan.view\n"
        "bad = {'napari', 'qtpy', 'PyQt6', 'PySide6', 'magicgui', 'superqt', 'matplotlib'}\n"
        "print(sorted(bad & {name.split('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.strip() == "[]"


def test_arrays_are_written_as_a_cohort_that_opens_again(tmp_path: Path) -> None:
    truth, guess = pair()
    ambiguous = np.zeros(truth.shape, bool)
    ambiguous[18:, :30] = True
    arrays = LabelsComparison(
        Labels(truth, {1: "A", 2: "B", 7: "A"}),
        {"a/b: model": Labels(guess, {1: "A", 2: "A", 9: "B"})},
        image=np.zeros((*truth.shape, 3), np.uint8),
        ambiguous=ambiguous,
        mpp=0.5,
    )
    cohort = npan.open_cohort(arrays.write(tmp_path / "saved"))
    found = cohort.evaluate()
    expected = engine(
        truth,
        guess,
        reference_classes={1: "A", 2: "B", 7: "A"},
        prediction_classes={1: "A", 2: "A", 9: "B"},
        ambiguous=ambiguous,
        mpp=0.5,
    )
    columns = list(expected.objects.columns)
    pd.testing.assert_frame_equal(
        found.objects[columns].reset_index(drop=True), expected.objects.reset_index(drop=True)
    )
    with pytest.raises(PanopticError, match="not empty"):
        arrays.write(tmp_path / "saved")


def test_lazy_arrays_are_written_block_by_block(tmp_path: Path) -> None:
    import dask.array as da

    truth, guess = pair()
    lazy = LabelsComparison(
        Labels(da.from_array(truth, chunks=16)), {"model": Labels(da.from_array(guess, chunks=16))}
    )
    cohort = npan.open_cohort(lazy.write(tmp_path / "saved"))
    assert cohort.evaluate().teams["pq_mean"].tolist() == [
        npan.evaluate_pair(truth, guess).metrics.pq
    ]


def test_empty_blocks_of_lazy_arrays_are_not_reported_as_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import dask.array as da

    labels = da.from_array(np.pad(pair()[0], ((0, 2000), (0, 0))), chunks=1024)
    folder = LabelsComparison(Labels(labels), {"model": Labels(labels)}).write(tmp_path / "saved")
    assert main(["evaluate", str(folder), "-o", str(tmp_path / "out"), "--no-distances"]) == 0
    assert "chunk" not in capsys.readouterr().err


def test_predictions_whose_names_cannot_be_folders_stay_apart(tmp_path: Path) -> None:
    truth, guess = pair()
    sides = {"a/b": Labels(truth), "a:b": Labels(guess)}
    found = npan.open_cohort(LabelsComparison(Labels(truth), sides).write(tmp_path / "nuclei"))
    pq = dict(found.evaluate().teams[["team", "pq_mean"]].to_numpy())
    assert pq == {"a_b": 1.0, "a_b (2)": npan.evaluate_pair(truth, guess).metrics.pq}
    points = {name: np.full((1, 2), n + 5.0) for n, name in enumerate(("a/b", "a:b"))}
    compared = PointsComparison(points["a/b"], points, (0.25, 0.25), (20, 20), name="\U0001f600")
    detections = open_detection_cohort(compared.write(tmp_path / "points"))
    assert detections.name == "\U0001f600"
    assert sorted(detections.team_names) == ["a_b", "a_b (2)"]


def test_images_of_other_types_are_turned_into_rgb() -> None:
    from napari_panoptic.io.cohorts.comparison import rgb

    assert rgb(np.array([[0.0, 1.0]])).tolist() == [[[0, 0, 0], [255, 255, 255]]]
    assert rgb(np.array([[0, 4000]], np.uint16))[0, 1].tolist() == [255, 255, 255]
    assert rgb(np.zeros((2, 2, 4), np.uint8)).shape == (2, 2, 3)
    assert Image.fromarray(rgb(np.full((2, 2), 7, np.uint8))).getpixel((0, 0)) == (7, 7, 7)
