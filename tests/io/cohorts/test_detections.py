"""Folders of detections: which frames and teams there are."""

import pytest

from napari_panoptic.common.errors import CohortError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.detections import open_detection_cohort
from napari_panoptic.io.cohorts.tasks import task_of
from napari_panoptic.values.cohort import Task

TOML = """task = "detections"
{extra}
[files]
image = "images/{{region}}.png"
reference = "truth/{{region}}.csv"
predictions = "teams/{{team}}/{{region}}.csv"
"""


def _touch(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


@pytest.fixture
def described(tmp_path):
    def described(extra="", files=TOML):
        (tmp_path / "cohort.toml").write_text(files.format(extra=extra))
        _touch(tmp_path, "images/A1_1.png", "images/A1_2.png", "truth/A1_1.csv", "truth/B1_1.csv")
        _touch(tmp_path, "teams/one/A1_1.csv", "teams/One/A1_2.csv", "teams/two/C.csv")
        return tmp_path

    return described


def test_a_described_folder(described):
    cohort = open_detection_cohort(described() / "cohort.toml")
    assert [(f.name, f.patient) for f in cohort.frames] == [
        ("A1_1", "A1"),
        ("A1_2", "A1"),
        ("B1_1", "B1"),
    ]
    assert [f.image is None for f in cohort.frames] == [False, False, True]
    assert [f.reference is None for f in cohort.frames] == [False, True, False]
    (team,) = cohort.team_names  # spelling is compared without case
    assert sorted(name for _, name in cohort.predictions) == ["A1_1", "A1_2"]
    messages = {f.kind: [] for f in cohort.findings}
    for finding in cohort.findings:
        messages[finding.kind].append(finding.message)
    assert any(f"no file of team '{team}'" in m for m in messages[FindingKind.MISSING])
    assert any("'two'" in m and "C" in m for m in messages[FindingKind.EXTRA])
    assert len(cohort.files) == 2 + 2 + 2


def test_pixel_sizes_go_by_the_name_of_the_frame(described):
    extra = '[mpp]\n"A*" = 0.25\n"*" = [0.2, 0.3]'
    frames = open_detection_cohort(described(extra)).frames
    assert [f.mpp_xy for f in frames] == [(0.25, 0.25), (0.25, 0.25), (0.2, 0.3)]
    one = open_detection_cohort(described("mpp = 0.5")).frames
    assert {f.mpp_xy for f in one} == {(0.5, 0.5)}


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("mpp = 0", "above 0"),
        ("mpp = true", "above 0"),
        ("mpp = [1, 2, 3]", "two for x and y"),
        ("[classes]\nA = [1, 2, 3]", "unknown key 'classes'"),
    ],
)
def test_a_description_that_cannot_be_is_refused(described, extra, message):
    with pytest.raises(CohortError, match=message):
        open_detection_cohort(described(extra))


def test_the_challenges_own_folders_need_no_description(tmp_path):
    _touch(
        tmp_path,
        *(f"A03/frames/x40/A03_00A{q}.tiff" for q in "ab"),
        *(
            f"A03/mitosis/A03_00A{q}_{kind}.csv"
            for q in "ab"
            for kind in ("mitosis", "not_mitosis")
        ),
        "A03/atypia/x20/A03_00A_cna_score_decision.csv",
        *("Teams/me/A03_00Aa.csv", "Teams/me/A03_00A.csv", "Teams/me/A03_00Ax.csv"),
    )
    assert task_of(tmp_path) is Task.DETECTIONS
    cohort = open_detection_cohort(tmp_path)
    assert [f.name for f in cohort.frames] == ["A03_00Aa", "A03_00Ab"]
    assert {f.patient for f in cohort.frames} == {"A03"}
    assert cohort.frames[0].reference.name == "A03_00Aa_mitosis.csv"
    assert list(cohort.predictions) == [("me", "A03_00Aa")]
    (scored,) = cohort.atypia
    assert (scored.name, list(scored.predictions)) == ("A03_00A", ["me"])
    extra = [f.message for f in cohort.findings if f.kind is FindingKind.EXTRA]
    assert len(extra) == 1
    assert "A03_00Ax" in extra[0]


def test_the_challenges_results_may_lie_in_its_own_folders(tmp_path):
    _touch(tmp_path, "A03/frames/x40/A03_00Aa.tiff", "A03/mitosis/A03_00Aa_mitosis.csv")
    _touch(tmp_path, "A03/atypia/x20/A03_00A_cna_score_decision.csv")
    _touch(tmp_path, "Teams/me/mitosis/A03_00Aa.csv", "Teams/me/atypia/A03_00A.csv")
    cohort = open_detection_cohort(tmp_path)
    assert list(cohort.predictions) == [("me", "A03_00Aa")]
    assert [list(scored.predictions) for scored in cohort.atypia] == [["me"]]
    assert not [f.message for f in cohort.findings if f.kind is FindingKind.EXTRA]


@pytest.mark.parametrize("content", ["nothing", "other"])
def test_a_folder_of_something_else_is_refused(tmp_path, content):
    if content == "other":
        _touch(tmp_path, "a.txt")
    with pytest.raises(CohortError, match="MITOS-ATYPIA-14"):
        open_detection_cohort(tmp_path)


def test_files_may_be_ignored(described):
    root = described(files=TOML + 'ignore = "truth/{{region}}_not.csv"\n')
    _touch(root, "truth/A1_1_not.csv")
    assert [f.name for f in open_detection_cohort(root).frames] == ["A1_1", "A1_2", "B1_1"]


def test_a_second_file_of_a_frame_is_told_of_and_not_used(described):
    root = described(
        files=TOML.replace(
            '"truth/{{region}}.csv"', '["truth/{{region}}.csv", "old/{{region}}.csv"]'
        ).replace('"teams/{{team}}/{{region}}.csv"', '"teams/{{team}}/*/{{region}}.csv"')
    )
    _touch(root, "old/A1_1.csv", "teams/one/a/A1_1.csv", "teams/one/b/A1_1.csv")
    _touch(root, "teams/one/a/C.csv")
    cohort = open_detection_cohort(root)
    assert cohort.region("A1_1").reference == root / "truth/A1_1.csv"
    assert cohort.predictions["one", "A1_1"] == root / "teams/one/a/A1_1.csv"
    told = {f.message for f in cohort.findings if f.kind is FindingKind.EXTRA}
    first = "not used, since another file of the same frame comes first"
    assert told == {
        f"1 annotation {first}: old/A1_1.csv",
        f"1 file of team 'one' {first}: b/A1_1.csv",
        "1 file of team 'one' for frames that this cohort does not have, not used: C",
    }


def test_a_file_may_fit_several_patterns(described):
    teams = '"teams/{{team}}/{{region}}.csv"'
    several = f"[{teams}, {teams.replace('.csv', '_pred.csv')}]"
    root = described(files=TOML.replace(teams, several))
    _touch(root, "teams/three/A1_1_pred.csv")
    cohort = open_detection_cohort(root)
    assert cohort.predictions["three", "A1_1"] == root / "teams/three/A1_1_pred.csv"
    assert not [f for f in cohort.findings if f.kind is FindingKind.EXTRA and f.team == "three"]


def test_names_are_unique_and_similar_ones_are_named(described):
    cohort = open_detection_cohort(described())
    assert cohort.region("A1_1").patient == "A1"
    with pytest.raises(CohortError, match="did you mean"):
        cohort.region("A1_9")
    with pytest.raises(CohortError, match="did you mean"):
        cohort.checked_team("onne")
