"""The real regions: everything opens, and nothing in them is odd but what is known."""

from __future__ import annotations

import numpy as np
import pytest

from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.io.images.slides import probe_image, read_image
from napari_panoptic.values.settings import Restoration
from tests.support.paths import SHARED_CASES, needs_shared_cases


@needs_shared_cases
@pytest.mark.parametrize(("name", "regions"), [("monusac", 30), ("monusac-large", 2)])
def test_every_file_of_the_shared_cohorts(name: str, regions: int) -> None:
    cohort = open_cohort(SHARED_CASES / name)
    assert len(cohort.regions) == regions
    assert [team.name for team in cohort.competing_teams] == [
        *("jitter", "log-seeds", "otsu-watershed", "tight"),
    ]
    assert cohort.findings == ()
    for region in cohort.regions:
        assert region.image is not None
        assert region.reference is not None
        info = probe_image(region.image)
        image = read_image(region.image)
        assert (image.shape, image.mpp) == (info.shape, info.mpp) == (info.shape, 0.2525)
        reference = load_masks(region.reference, cohort.scheme, shape=info.shape)
        assert len(reference.labels) > 0
        assert reference.mpp == 0.2525
        kinds = {finding.kind for finding in reference.findings}
        assert kinds <= {FindingKind.OVERLAPPING, FindingKind.DEGENERATE, FindingKind.SELF_CROSSING}
        assert reference.labels.vanished == ()
        for team in cohort.teams:
            forms = cohort.predictions[team.name, region.name]
            for files in forms.values():
                loaded = load_masks(
                    files,
                    cohort.scheme,
                    shape=info.shape,
                    restoration=Restoration.BORDER_DILATED,
                )
                assert loaded.labels.shape == info.shape
                assert {f.kind for f in loaded.findings} <= {FindingKind.VANISHED}
                for mask in loaded.labels.class_masks.values():
                    assert mask.dtype == np.int32
