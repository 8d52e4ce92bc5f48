"""Cohorts of several raters: QUBIQ's folders, and patterns."""

import pytest

from napari_panoptic.common.errors import CohortError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.raters import open_raters
from napari_panoptic.io.cohorts.tasks import task_of
from napari_panoptic.values.cohort import Source, Task
from napari_panoptic.values.raters import AtLevel, BothEmpty


def _touch(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def _qubiq(root, case="case01", raters=3, structure="task01"):
    _touch(root, f"{case}/image.nii.gz")
    _touch(root, *(f"{case}/{structure}_seg{n:02d}.nii.gz" for n in range(1, raters + 1)))


def _toml(root, text):
    (root / "cohort.toml").write_text(f'task = "raters"\n{text}')


@pytest.mark.parametrize(
    ("place", "team_place"),
    [
        ("", "A"),
        ("kidney", "A"),
        ("kidney", "A/kidney"),
        ("kidney/Training", "Teams/A/kidney"),
        ("data/kidney/Validation", "predictions/A/kidney/Validation"),
        ("", "Submissions/A"),
    ],
)
def test_the_folders_of_qubiq_are_recognised(tmp_path, place, team_place):
    _qubiq(tmp_path / place)
    _touch(tmp_path, f"{team_place}/case01/task01.nii.gz")
    assert task_of(tmp_path) is Task.RATERS
    cohort = open_raters(tmp_path)
    assert (cohort.structures, cohort.raters, cohort.teams) == (
        ("task01",),
        ("01", "02", "03"),
        ("A",),
    )
    assert [case.name for case in cohort.cases] == ["case01"]
    assert cohort.cases[0].images[""].name == "image.nii.gz"
    assert cohort.predictions["A", "case01", "task01"].path == (
        tmp_path / team_place / "case01" / "task01.nii.gz"
    )
    assert cohort.findings == ()


def test_several_data_sets_keep_their_cases_apart(tmp_path):
    _qubiq(tmp_path / "kidney" / "Training")
    _qubiq(tmp_path / "prostate" / "Training", raters=2)
    _touch(tmp_path, "A/kidney/case01/task01.nii.gz", "A/prostate/case01/task01.nii.gz")
    _touch(tmp_path, "B/case01/task01.nii.gz")  # of which data set?
    cohort = open_raters(tmp_path)
    assert cohort.structures == ("kidney/task01", "prostate/task01")
    assert set(cohort.predictions) == {
        ("A", "kidney/case01", "kidney/task01"),
        ("A", "prostate/case01", "prostate/task01"),
    }
    (extra,) = [f for f in cohort.findings if f.kind is FindingKind.EXTRA]
    assert "B/case01/task01.nii.gz" in extra.message


def test_what_is_missing_is_said(tmp_path):
    _qubiq(tmp_path, "case01")
    _qubiq(tmp_path, "case02", raters=2)
    _qubiq(tmp_path, "case03", raters=1)
    (tmp_path / "case03" / "image.nii.gz").unlink()
    _touch(tmp_path, "A/case01/task01.nii.gz")
    messages = [finding.message for finding in open_raters(tmp_path).findings]
    assert any("'case02' has no mask of 'task01' by rater 03" in m for m in messages)
    assert any("'case03' has a mask of 'task01' by one rater only" in m for m in messages)
    assert any("no prediction for 2 structures, treated as background" in m for m in messages)
    assert any("1 case has no image" in m for m in messages)


def test_a_folder_without_masks_is_no_such_cohort(tmp_path):
    with pytest.raises(CohortError, match=r"empty.*QUBIQ"):
        open_raters(tmp_path)
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(CohortError, match=r"no rater's mask.*QUBIQ"):
        open_raters(tmp_path)
    with pytest.raises(CohortError, match="this is a file"):
        open_raters(tmp_path / "notes.txt")
    with pytest.raises(CohortError, match="no such folder"):
        open_raters(tmp_path / "nowhere")
    assert task_of(tmp_path) is Task.NUCLEI


def test_any_layout_can_be_described(tmp_path):
    _toml(
        tmp_path,
        """
[levels]
at = [0.25, 0.75]
equal = "above"
both_empty = "undefined"
[files]
image = "images/{case}-{modality}.png"
raters = "raters/{rater}/{case}_{structure}.png"
predictions = "{team}/{case}_{structure}.tif"
""",
    )
    _touch(tmp_path, "images/p1-t1.png", "images/p1-t2.png")
    _touch(tmp_path, "raters/anna/p1_tumour.png", "raters/ben/p1_tumour.png", "X/p1_tumour.tif")
    _touch(tmp_path, "X/p9_tumour.tif")
    cohort = open_raters(tmp_path / "cohort.toml")
    assert cohort.raters == ("anna", "ben")
    assert list(cohort.cases[0].images) == ["t1", "t2"]
    assert set(cohort.predictions) == {("X", "p1", "tumour")}
    settings = cohort.settings
    assert (settings.levels, settings.at_level) == ((0.25, 0.75), AtLevel.ABOVE)
    assert settings.both_empty is BothEmpty.UNDEFINED
    assert any("for what no rater annotated" in f.message for f in cohort.findings)


def test_files_of_objects_hold_every_class(tmp_path):
    _toml(
        tmp_path,
        """
[classes]
Round = [255, 0, 0]
Long = [0, 0, 255]
[files]
raters.imagescope = "{rater}/{case}.xml"
predictions.labels = "teams/{team}/{case}.npy"
""",
    )
    _touch(tmp_path, "anna/c1.xml", "ben/c1.xml", "teams/T/c1.npy", "teams/T/c1.csv")
    cohort = open_raters(tmp_path)
    assert cohort.structures == ("Round", "Long")
    mask = cohort.cases[0].masks["Long"]["ben"]
    assert mask.objects is not None
    assert mask.objects.source == Source.IMAGESCOPE
    map_ = cohort.predictions["T", "c1", "Round"]
    assert map_.objects is not None
    assert [path.name for path in map_.objects.all_paths] == ["c1.npy", "c1.csv"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[files]\nimage = '{case}.png'", "give raters"),
        ("[files]\nraters = '{case}_{rater}.png'", r"needs the placeholder \{structure\}"),
        ("[files]\nraters = '{region}.png'", "placeholders are"),
        ("[files]\nraters.xml = '{case}.xml'", "unknown key 'xml'"),
        ("[files]\nraters.labels = '{case}/{rater}.tif'", "classes"),
        ("[levels]\nat = 0.5", "must be a list of numbers"),
        ("[levels]\nat = [0.5, 0.4]", "ascending"),
        ("[levels]\nequal = 'maybe'", '"at-least" or "above"'),
        ("[level]\nat = [0.5]", "did you mean levels"),
    ],
)
def test_mistakes_in_a_description_are_said(tmp_path, text, message):
    _qubiq(tmp_path)
    _toml(tmp_path, text)
    with pytest.raises(CohortError, match=message) as caught:
        open_raters(tmp_path)
    assert caught.value.path == tmp_path / "cohort.toml"
