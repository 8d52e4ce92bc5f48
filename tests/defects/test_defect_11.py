"""A named pipe among the chunks of a Zarr label image made evaluate hang for ever."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from napari_panoptic.cli.main import main
from tests.defects.hung import needs_pipes, not_waited_for, pipe_instead_of
from tests.support.builders import two_objects, write_svs
from tests.support.zarr_stores import write_zarr

DESCRIPTION = """
[classes]
cell = [255, 0, 0]

[files]
image = "{region}.svs"
reference.labels = "{region}.zarr"
predictions.labels = "teams/{team}/{region}.zarr"
"""


@needs_pipes
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_defect_11_a_pipe_among_the_chunks_is_reported(
    zarr_format: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cohort = tmp_path / "cohort"
    objects = two_objects().astype(np.uint16)
    for name in ("p_1", "p_2"):
        write_svs(cohort / f"{name}.svs", np.zeros((*objects.shape, 3), np.uint8))
        for place in (cohort, cohort / "teams" / "a"):
            write_zarr(place / f"{name}.zarr", objects, kind="array", zarr_format=zarr_format)
    (cohort / "cohort.toml").write_text(DESCRIPTION)
    chunk = "0.0" if zarr_format == 2 else "c/0/0"
    pipe = pipe_instead_of(cohort / "teams" / "a" / "p_1.zarr" / chunk)
    with not_waited_for(pipe):
        code = main(["evaluate", str(cohort), "--output", str(tmp_path / "tables")])
    assert code == 0
    assert "p_2" in (tmp_path / "tables" / "regions.csv").read_text()
    assert "found a pipe" in capsys.readouterr().err
