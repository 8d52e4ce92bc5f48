"""Outlines of whole slides in the regions that are patches of them, in every format of outlines.

The oracle draws the whole slide and cuts the patch out of it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from napari_panoptic.common.errors import CohortError
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.formats.format import Objects
from napari_panoptic.io.formats.polygons.imagescope_edits import write_files
from napari_panoptic.io.formats.registry import known_forms, load_masks, open_masks
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.values.cohort import (
    MONUSAC_CLASSES,
    MaskFiles,
    SlidePatch,
    Source,
)
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side

SLIDE = (90, 120)
PLACES = [(0, 0, 40, 50), (30, 25, 60, 60), (-5, -7, 30, 20), (95, 70, 50, 50)]
"""x, y, width and height of patches; the last ones reach beyond the slide."""


def slide_labels() -> NDArray[np.int64]:
    """Draw discs and rings, and thin objects."""
    rng = np.random.default_rng(3)
    image = np.zeros(SLIDE, np.int64)
    y, x = np.indices(SLIDE)
    for id_ in range(1, 26):
        cy, cx = rng.integers(0, SLIDE[0]), rng.integers(0, SLIDE[1])
        far = (y - cy) ** 2 + (x - cx) ** 2
        image[(far <= rng.integers(4, 90)) & (image == 0)] = id_
        image[(far <= 3) & (id_ % 3 == 0) & (image == id_)] = 0
    image[50, 20:100] = 26
    return image


def rings(geojson: str) -> list[tuple[str, list[list[int]]]]:
    """Return class and first outline of each object."""
    found = []
    for feature in json.loads(geojson)["features"]:
        parts = feature["geometry"]["coordinates"]
        ring = parts[0] if feature["geometry"]["type"] == "Polygon" else parts[0][0]
        found.append((feature["properties"]["classification"]["name"], ring[:-1]))
    return found


def halo_xml(geojson: str) -> str:
    text = ""
    for name, ring in rings(geojson):
        points = "".join(f'<V X="{x}" Y="{y}" />' for x, y in ring)
        region = f'<Region Type="Polygon" NegativeROA="0"><Vertices>{points}</Vertices></Region>'
        text += f'<Annotation Name="{name}"><Regions>{region}</Regions></Annotation>'
    return f"<Annotations>{text}</Annotations>"


def dsa_json(geojson: str) -> str:
    elements = [
        {"type": "polyline", "closed": True, "points": [[x, y, 0] for x, y in ring], "group": name}
        for name, ring in rings(geojson)
    ]
    return json.dumps({"name": "a", "elements": elements})


def asap_xml(geojson: str) -> str:
    text = ""
    for name, ring in rings(geojson):
        points = "".join(
            f'<Coordinate Order="{n}" X="{x}" Y="{y}" />' for n, (x, y) in enumerate(ring)
        )
        text += f'<Annotation Type="Polygon" PartOfGroup="{name}"><Coordinates>{points}'
        text += "</Coordinates></Annotation>"
    return f"<ASAP_Annotations><Annotations>{text}</Annotations></ASAP_Annotations>"


WRITTEN = {Source.ASAP: asap_xml, Source.HALO: halo_xml, Source.DSA: dsa_json}
SOURCES = [
    Source.GEOJSON,
    Source.IMAGESCOPE,
    Source.HOVERNET,
    Source.ANNOTATION_STORE,
    Source.IMAGEJ_ROI,
    *WRITTEN,
]


def written(source: Source, folder: Path) -> Path:
    """Write the slide in a format."""
    labels = LabelImage.from_array(slide_labels(), "Epithelial", MONUSAC_CLASSES.names)
    objects = Objects(labels, Side.REFERENCE, "s", "", None, MONUSAC_CLASSES, 0.25)
    form = known_forms()[Source.GEOJSON if source in WRITTEN else source]
    assert form.write is not None
    path = folder / f"s{form.endings[0]}"
    form.write(path, objects)
    if source in WRITTEN:
        text = WRITTEN[source](path.read_text())
        path = folder / f"s{known_forms()[source].endings[0]}"
        path.write_text(text)
    return path


@pytest.mark.parametrize("source", SOURCES)
def test_a_patch_is_cut_out_of_the_slide(source: Source, tmp_path: Path) -> None:
    path = written(source, tmp_path)
    plain = MaskFiles(source, {"": (path,)})
    whole = load_masks(plain, MONUSAC_CLASSES, shape=SLIDE)
    # Outlines beyond the slide are drawn on a margin, too.
    slide = np.pad(whole.labels.id_image(), 60)
    total = len(whole.labels)
    for x, y, width, height in PLACES:
        files = MaskFiles(source, {"": (path,)}, patch=SlidePatch(x, y))
        masks = load_masks(files, MONUSAC_CLASSES, shape=(height, width))
        expected = slide[60 + y : 60 + y + height, 60 + x : 60 + x + width]
        assert np.array_equal(masks.labels.id_image(), expected)
        (finding,) = [f for f in masks.findings if f.kind is FindingKind.OUTSIDE_IMAGE]
        n_used = len(np.unique(expected[expected > 0]))
        assert finding.count == total - n_used
        assert f"{n_used} of {total} outlines of the slide used" in finding.message
        tiles = open_masks(files, MONUSAC_CLASSES, (height, width))
        assert np.array_equal(tiles.labels.read((0, 0, height, width)), masks.labels.index)


def test_a_patch_at_another_scale(tmp_path: Path) -> None:
    """A pixel has the object in which its centre lies on the slide, drawn four times as fine."""
    path = written(Source.GEOJSON, tmp_path)
    whole = load_masks(MaskFiles(Source.GEOJSON, {"": (path,)}), MONUSAC_CLASSES, shape=SLIDE)
    slide = whole.labels.id_image()
    for scale, x, y in ((2.5, 11.0, 7.25), (0.5, 40.0, 30.0)):
        files = MaskFiles(Source.GEOJSON, {"": (path,)}, patch=SlidePatch(x, y, scale))
        masks = load_masks(files, MONUSAC_CLASSES, shape=(30, 30))
        rows, columns = (np.arange(30) + 0.5) * scale + y, (np.arange(30) + 0.5) * scale + x
        expected = slide[np.floor(rows).astype(int)][:, np.floor(columns).astype(int)]
        assert np.array_equal(masks.labels.id_image(), expected)
        assert expected.any()


TOML = """
[classes]
Epithelial = [255, 0, 0]
[files]
image = "{region}.png"
reference.geojson = "slides/{slide}.geojson"
predictions.geojson = "{team}/{region}.geojson"
"""
TABLE = "region,slide,x,y,scale\na_1,s,0,0,1\na_2,s,30,25,\n"


def test_a_cohort_of_patches(tmp_path: Path) -> None:
    """The annotation is that of the slide; the team's outlines are those of the patches."""
    (tmp_path / "slides").mkdir()
    (tmp_path / "team").mkdir()
    labels = slide_labels()
    written(Source.GEOJSON, tmp_path / "slides")
    (tmp_path / "slides" / "other.geojson").write_text('{"type":"FeatureCollection","features":[]}')
    write = known_forms()[Source.GEOJSON].write
    assert write is not None
    for name, (x, y, width, height) in zip(("a_1", "a_2"), PLACES, strict=False):
        Image.fromarray(np.zeros((height, width, 3), np.uint8)).save(tmp_path / f"{name}.png")
        own = LabelImage.from_array(
            labels[y : y + height, x : x + width], "Epithelial", ("Epithelial",)
        )
        objects = Objects(own, Side.PREDICTION, name, "team", None, MONUSAC_CLASSES, None)
        write(tmp_path / "team" / f"{name}.geojson", objects)
    description = tmp_path / "cohort.toml"
    description.write_text(TOML + 'patches = "patches.csv"\n')
    (tmp_path / "patches.csv").write_text(TABLE + "a_9,s,0,0,1\n")
    cohort = open_cohort(tmp_path)
    assert [region.name for region in cohort.regions] == ["a_1", "a_2", "a_9"]
    (extra,) = [f for f in cohort.findings if f.kind is FindingKind.EXTRA]
    assert "no region has a place in the slide 'other'" in extra.message
    for name in ("a_1", "a_2"):
        snapshot = load_region(cohort, name, EvaluationSettings(distances=False))
        assert snapshot.evaluations["team"].metrics.pq == 1.0
    inline = (
        '[patches.a_1]\nslide = "s"\nx = 0\ny = 0\n[patches.a_2]\nslide = "s"\nx = 30\ny = 25\n'
    )
    description.write_text(TOML + inline)
    files = [region.reference for region in open_cohort(tmp_path).regions]
    assert [own.patch for own in files if own] == [SlidePatch(0, 0), SlidePatch(30, 25)]
    # What is edited in a patch is not written into a copy of the slide's annotation.
    slide = MaskFiles(Source.IMAGESCOPE, {"": (written(Source.IMAGESCOPE, tmp_path),)})
    patch = MaskFiles(slide.source, slide.paths, patch=SlidePatch(30, 25))
    masks = load_masks(patch, MONUSAC_CLASSES, shape=(60, 60))
    objects = Objects(
        masks.labels, Side.REFERENCE, "a_2", "", None, MONUSAC_CLASSES, None, original=patch
    )
    write_files(tmp_path / "edited.xml", objects)
    edited = MaskFiles(Source.IMAGESCOPE, {"": (tmp_path / "edited.xml",)})
    again = load_masks(edited, MONUSAC_CLASSES, shape=(60, 60))
    assert np.array_equal(again.labels.index, masks.labels.index)


@pytest.mark.parametrize(
    ("text", "table", "message"),
    [
        (TOML, None, "say where regions lie"),
        (
            TOML.replace("{slide}", "{region}") + "[patches.a]\nx = 1\ny = 2\n",
            None,
            r"no path .*sl",
        ),
        (TOML + 'patches = "patches.csv"\n', None, "there is no table"),
        (TOML + 'patches = "patches.csv"\n', "region,x\na,1\n", "with the columns region, x and y"),
        (TOML + 'patches = "patches.csv"\n', "region,x,y,z\na,1,2,3\n", "found z; rename"),
        (TOML + 'patches = "patches.csv"\n', "region,x,y\n,1,2\n", "name of a region in line 2"),
        (TOML + 'patches = "patches.csv"\n', "region,x,y\na,1\n", "3 cells in line 2, found 2"),
        (TOML + 'patches = "patches.csv"\n', "region,x,y\na,1,b\n", "line 2.y must be a number"),
        (TOML + 'patches = "patches.csv"\n', "region,x,y\na,1,2\nA,1,2\n", "two places"),
        (TOML + "[patches.a]\nx = 1\ny = 2\nscale = 0\n", None, "scale must be a number from"),
        (TOML + "[patches.a]\nx = 1\nz = 2\n", None, "unknown key 'z'"),
        (TOML.replace("geojson", "labels"), None, "cannot have the placeholder"),
    ],
)
def test_places_that_cannot_be_are_refused(
    text: str, table: str | None, message: str, tmp_path: Path
) -> None:
    (tmp_path / "cohort.toml").write_text(text)
    if table is not None:
        (tmp_path / "patches.csv").write_text(table)
    with pytest.raises(CohortError, match=message):
        open_cohort(tmp_path)
