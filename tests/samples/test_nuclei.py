"""The sample cohort of nuclei: complete, and with something of everything in it."""

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import tifffile

from napari_panoptic.common.errors import CohortError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.io.images.slides import read_image
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.samples.write import write_sample_cohort
from napari_panoptic.values.cohort import Cohort, MaskFiles, Region, Source
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import Restoration
from napari_panoptic.values.vocabulary import Cause, Side, Status

SAMPLE_MPP = 0.2525
"""As in scans at 40x."""
SAMPLE_TEAMS = ("careful", "over-splitter", "merger", "confuser")
BOTH_SIDES = {Cause.AMBIGUOUS_SPILL, Cause.TOO_SMALL, Cause.TOO_LARGE, Cause.DISPLACED}
CAUSES_OF = {
    Status.FN: {*BOTH_SIDES, Cause.SPLIT, Cause.MERGED, Cause.MISSED},
    Status.FP: {*BOTH_SIDES, Cause.FRAGMENT, Cause.MERGER, Cause.DUPLICATE, Cause.SPURIOUS},
}


@pytest.fixture(scope="module")
def folder(nuclei_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the sample: a test edits it."""
    return shutil.copytree(nuclei_sample, tmp_path_factory.mktemp("sample") / "cohort")


@pytest.fixture(scope="module")
def copied_cohort(folder: Path) -> Cohort:
    return open_cohort(folder)


def _labels(
    cohort: Cohort, region: Region, files: MaskFiles
) -> tuple[LabelImage, np.ndarray | None, tuple[Finding, ...]]:
    assert region.image is not None
    loaded = load_masks(
        files,
        cohort.scheme,
        shape=read_image(region.image).shape,
        restoration=Restoration.BORDER_REMOVED,
        radius=1,
    )
    return loaded.labels, loaded.ambiguous, loaded.findings


def _pairs(cohort: Cohort, team: str, source: Source) -> list[LabelPair]:
    pairs = []
    for region in cohort.regions:
        assert region.reference is not None
        reference, ambiguous, _ = _labels(cohort, region, region.reference)
        prediction, _, findings = _labels(
            cohort, region, cohort.predictions[team, region.name][source]
        )
        assert findings == ()
        pairs.append(LabelPair(reference, prediction, ambiguous, mpp=SAMPLE_MPP))
    return pairs


def test_it_opens_complete_and_without_anything_odd(copied_cohort: Cohort) -> None:
    assert len(copied_cohort.patients) == 3
    assert len(copied_cohort.regions) == 6
    assert {team.name for team in copied_cohort.competing_teams} == set(SAMPLE_TEAMS)
    assert copied_cohort.findings == ()
    for team in SAMPLE_TEAMS:
        for region in copied_cohort.regions:
            forms = copied_cohort.predictions[team, region.name]
            assert set(forms) == {Source.COLOUR_CODED, Source.SUBMISSION}


def test_the_images_are_slides_of_a_scanner_at_40x(copied_cohort: Cohort) -> None:
    for region in copied_cohort.regions:
        assert region.image is not None
        image = read_image(region.image)
        assert image.findings == ()
        assert image.mpp == pytest.approx(SAMPLE_MPP)
        height, width = image.shape
        assert 300 <= height <= 600
        assert 300 <= width <= 600


def test_every_region_has_nuclei_enough_and_the_cohort_every_class(copied_cohort: Cohort) -> None:
    classes: Counter[str] = Counter()
    for region in copied_cohort.regions:
        assert region.reference is not None
        labels, _, _ = _labels(copied_cohort, region, region.reference)
        assert 30 <= len(labels) <= 90
        classes.update(labels.class_names_of_objects().tolist())
    assert min(classes[name] for name in copied_cohort.scheme.names) >= 15


def test_the_annotation_has_the_oddities_of_real_ones(copied_cohort: Cohort) -> None:
    findings: list[Finding] = []
    ambiguous_regions = 0
    for region in copied_cohort.regions:
        assert region.reference is not None
        _, ambiguous, found = _labels(copied_cohort, region, region.reference)
        findings += found
        ambiguous_regions += ambiguous is not None and bool(ambiguous.any())
    kinds = Counter(finding.kind for finding in findings)
    assert kinds == {FindingKind.VANISHED: 1, FindingKind.OVERLAPPING: 1}
    assert ambiguous_regions == 2


def test_every_status_and_every_cause_is_there_to_be_seen(copied_cohort: Cohort) -> None:
    seen: set[tuple[str, str, str]] = set()
    for team in SAMPLE_TEAMS:
        for pair in _pairs(copied_cohort, team, Source.COLOUR_CODED):
            objects = evaluate(pair).objects
            seen |= set(zip(objects["side"], objects["status"], objects["cause"], strict=True))
    expected = {(Side.REFERENCE, Status.FN, cause) for cause in CAUSES_OF[Status.FN]}
    expected |= {(Side.PREDICTION, Status.FP, cause) for cause in CAUSES_OF[Status.FP]}
    for side in Side:
        for status in (Status.TP, Status.MISCLASSIFIED, Status.IGNORED):
            expected.add((side, status, Cause.NONE))
    assert seen == expected


def test_each_team_fails_in_the_manner_of_its_name(copied_cohort: Cohort) -> None:
    quality: dict[str, float] = {}
    failures: dict[str, Counter[str]] = {}
    for team in SAMPLE_TEAMS:
        evaluations = [evaluate(pair) for pair in _pairs(copied_cohort, team, Source.COLOUR_CODED)]
        quality[team] = float(np.mean([result.metrics["pq"] for result in evaluations]))
        failures[team] = Counter()
        for result in evaluations:
            failures[team].update(result.objects["cause"])
            failures[team].update(result.objects["status"])
    assert max(quality, key=quality.__getitem__) == "careful"
    for cause, team in (
        (Cause.SPLIT, "over-splitter"),
        (Cause.MERGED, "merger"),
        (Status.MISCLASSIFIED, "confuser"),
        (Cause.AMBIGUOUS_SPILL, "confuser"),
    ):
        numbers = {name: failures[name][cause] for name in SAMPLE_TEAMS}
        assert max(numbers, key=numbers.__getitem__) == team


def test_the_submissions_have_the_objects_of_the_published_masks(copied_cohort: Cohort) -> None:
    for team in SAMPLE_TEAMS:
        submitted = _pairs(copied_cohort, team, Source.SUBMISSION)
        published = _pairs(copied_cohort, team, Source.COLOUR_CODED)
        for whole, bordered in zip(submitted, published, strict=True):
            inner = bordered.prediction.index > 0
            ours = whole.prediction.class_index[whole.prediction.index[inner] - 1]
            theirs = bordered.prediction.class_index[bordered.prediction.index[inner] - 1]
            assert (whole.prediction.index[inner] > 0).all()
            assert (ours == theirs).all()


def test_every_team_writes_its_mat_files_in_a_manner_of_its_own(folder: Path) -> None:
    manners = set()
    for team in SAMPLE_TEAMS:
        path = next((folder / "Submissions" / team).rglob("Lymphocyte/*.mat"))
        variables = {k: v for k, v in scipy.io.loadmat(path).items() if not k.startswith("__")}
        ((name, mask),) = variables.items()
        manners.add((name, str(mask.dtype)))
    assert len(manners) == len(SAMPLE_TEAMS)


def test_masks_hold_only_the_colours_of_the_challenge(folder: Path, copied_cohort: Cohort) -> None:
    allowed = {
        *copied_cohort.scheme.colours,
        *copied_cohort.scheme.border,
        *copied_cohort.scheme.background,
    }
    masks = [*folder.rglob("*_mask.png.tif"), *folder.rglob("*_RGB_mask.tif.tif")]
    assert len(masks) == 6 * (len(SAMPLE_TEAMS) + 1)
    for path in masks:
        red, green, blue = np.moveaxis(tifffile.imread(path).astype(int), -1, 0)
        colours = np.unique(red << 16 | green << 8 | blue).tolist()
        assert {(code >> 16, code >> 8 & 255, code & 255) for code in colours} <= allowed


def test_the_picture_is_pink_tissue_with_purple_nuclei(copied_cohort: Cohort) -> None:
    for region in copied_cohort.regions:
        assert region.image is not None
        assert region.reference is not None
        rgb = np.asarray(read_image(region.image).levels[0]).astype(int)
        labels, _, _ = _labels(copied_cohort, region, region.reference)
        red, green, blue = np.median(rgb[labels.index > 0], axis=0)
        assert green < red < blue < 190
        red, green, blue = np.median(rgb[labels.index == 0], axis=0)
        assert green < blue < red
        assert red > 200


def test_it_is_small(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 3_000_000


def test_an_existing_sample_keeps_what_was_edited_in_it(folder: Path) -> None:
    annotation = next(folder.rglob("*.xml"))
    original = annotation.read_bytes()
    try:
        annotation.write_bytes(original + b"<!-- edited -->")
        assert write_sample_cohort(folder) == folder
        assert annotation.read_bytes() == original + b"<!-- edited -->"
    finally:
        annotation.write_bytes(original)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    with pytest.raises(CohortError, match="cannot be written") as caught:
        write_sample_cohort(file / "cohort")
    assert caught.value.path == file / "cohort"
