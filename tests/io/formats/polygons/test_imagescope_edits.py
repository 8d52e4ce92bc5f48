"""Annotations saved after editing: the pixels wanted, and all else as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree.ElementTree import Element

import numpy as np
from defusedxml.ElementTree import parse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from napari_panoptic.io.formats.format import LoadedMasks, Objects
from napari_panoptic.io.formats.registry import load_masks
from napari_panoptic.io.formats.saving import write_objects
from napari_panoptic.values.cohort import MONUSAC_CLASSES, MaskFiles, Source
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.vocabulary import Side
from tests.support.examples import examples

SHAPE = (24, 30)
NAMES = MONUSAC_CLASSES.names
# A rich file: colours, notes, an unknown class, overlaps, a covered object, an ambiguous area.
XML = """<?xml version="1.0" encoding="UTF-8"?>
<Annotations MicronsPerPixel="0.252"><Annotation Id="9" Name="a" LineColor="255" Incremental="0">
<Attributes><Attribute Name="Epithelial" Id="0" Value="x"/></Attributes><Regions>
<RegionAttributeHeaders><AttributeHeader Id="9999" Name="Region" ColumnWidth="-1"/>
</RegionAttributeHeaders>
<Region Id="7" Text="größer" Area="12.5"><Attributes><Attribute Name="sure" Value="no"/>
</Attributes><Vertices>{a}</Vertices></Region>
<Region Id="8"><Vertices>{b}</Vertices></Region><Region Id="9"><Vertices>{c}</Vertices></Region>
</Regions><Plots/></Annotation><Annotation Id="2" LineColor="65280"><Attributes>
<Attribute Name="Stroma"/></Attributes><Regions><Region Id="1" Text="kept"><Vertices>{d}</Vertices>
</Region></Regions></Annotation><Annotation Id="3" LineColor="16711680"><Attributes>
<Attribute Name="Lymphocyte"/></Attributes><Regions><Region Id="1" Text="l"><Vertices>{e}</Vertices>
</Region></Regions></Annotation><Annotation Id="4"><Attributes><Attribute Name="Ambiguous"/>
</Attributes><Regions><Region Id="1" Text="blurred"><Vertices>{f}</Vertices></Region></Regions>
</Annotation></Annotations>"""


def box(y: float, x: float, height: int, width: int) -> str:
    corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
    return "".join(f'<Vertex X="{a}" Y="{b}" Z="0"/>' for a, b in corners)


def original(folder: Path) -> Path:
    """Write objects 1, 2, 3 (which covers 2), 4 (of no known class), 5 and an excluded area."""
    boxes = {
        "a": box(1.25, 1.75, 6, 6),
        "b": box(10, 3, 2, 2),
        "c": box(8, 2, 6, 6),
        "d": box(15, 20, 4, 4),
        "e": box(4, 5, 6, 8),
        "f": box(18, 0, 4, 9),
    }
    path = folder / "before.xml"
    path.write_text(XML.format(**boxes), encoding="utf-8")
    return path


def load(path: Path) -> LoadedMasks:
    files = MaskFiles(Source.IMAGESCOPE, {"": (path,)})
    return load_masks(files, MONUSAC_CLASSES, shape=SHAPE)


def saved(before: Path, labels: LabelImage, ambiguous: NDArray[np.bool_] | None) -> Path:
    """Save as the window does."""
    files = MaskFiles(Source.IMAGESCOPE, {"": (before,)})
    objects = Objects(
        labels, Side.REFERENCE, "R", "", ambiguous, MONUSAC_CLASSES, 0.252, original=files
    )
    after = before.with_name("after.xml")
    assert write_objects(after, objects) == (after,)
    return after


def edited(image: NDArray[np.int64], classes: dict[int, str]) -> LabelImage:
    return LabelImage.from_array(image, classes, NAMES)


def texts(path: Path) -> list[str]:
    """Give the regions in document order: text, or else its number of vertices."""
    return [
        region.get("Text") or f"{len(region.findall('Vertices/Vertex'))} vertices"
        for region in parse(path).iter("Region")
    ]


def state(masks: LoadedMasks) -> tuple[NDArray[np.int64], dict[int, str]]:
    names = masks.labels.class_names_of_objects().tolist()
    return masks.labels.id_image(), dict(zip(masks.labels.ids.tolist(), names, strict=True))


def alike(one: Element, other: Element) -> bool:
    """Tell whether two elements say the same, down to their last child."""
    return (
        one.tag == other.tag
        and one.attrib == other.attrib
        and len(one) == len(other)
        and all(alike(a, b) for a, b in zip(one, other, strict=True))
    )


def test_what_nobody_changed_is_the_same_file(tmp_path: Path) -> None:
    before = original(tmp_path)
    masks = load(before)
    after = saved(before, masks.labels, masks.ambiguous)
    assert alike(parse(before).getroot(), parse(after).getroot())


def test_only_what_was_changed_is_written_anew(tmp_path: Path) -> None:
    before = original(tmp_path)
    masks = load(before)
    image, classes = state(masks)
    assert set(classes) == {1, 3, 5}
    image[0, 0:3] = 1  # one grows
    image[image == 5] = 0  # one goes, and does not bare what it covered of others
    image[20:23, 12:15] = 6  # one comes
    after = saved(before, edited(image, classes | {6: "Macrophage"}), masks.ambiguous)
    again = load(after)
    grown = parse(after).find(".//Region[@Text='größer']")
    assert grown is not None
    assert grown.find("Attributes/Attribute[@Name='sure']") is not None
    assert grown.get("Area") == "0"
    layers = parse(after).findall("Annotation")
    assert [layer.get("LineColor") for layer in layers[:3]] == ["255", "65280", "16711680"]
    # The object that 3 covered would come to light; it stays what it was, unseen.
    assert texts(after) == ["größer", "7 vertices", "kept", "blurred", "4 vertices"]
    number = {0: 0, 1: 1, 3: 2, 6: 5}
    assert np.array_equal(again.labels.id_image(), np.vectorize(number.get)(image))
    assert again.mpp == 0.252
    assert again.ambiguous is not None
    assert np.array_equal(again.ambiguous, masks.ambiguous)


def test_another_class_is_another_layer(tmp_path: Path) -> None:
    before = original(tmp_path)
    masks = load(before)
    image, classes = state(masks)
    after = saved(before, edited(image, classes | {1: "Lymphocyte"}), None)
    again = load(after)
    assert again.ambiguous is None
    assert texts(after) == ["4 vertices", "4 vertices", "kept", "l", "größer"]
    same = again.labels.class_names_of_objects()[again.labels.ids == 5]
    assert same.tolist() == ["Lymphocyte"]
    assert np.array_equal(again.labels.index > 0, image > 0)


BOX = st.tuples(st.integers(0, 23), st.integers(0, 29), st.integers(1, 12), st.integers(1, 12))
STROKE = st.tuples(BOX, st.sampled_from([0, 1, 3, 5, 6, 7]))


@given(
    strokes=st.lists(STROKE, max_size=5),
    classes=st.fixed_dictionaries({id_: st.sampled_from(NAMES) for id_ in (1, 3, 5, 6, 7)}),
    area=st.one_of(st.none(), BOX),
)
@settings(max_examples=examples(60), deadline=None)
def test_what_is_saved_opens_as_it_was_drawn(
    strokes: list[tuple[tuple[int, int, int, int], int]],
    classes: dict[int, str],
    area: tuple[int, int, int, int] | None,
) -> None:
    with TemporaryDirectory() as folder:
        before = original(Path(folder))
        masks = load(before)
        image, _ = state(masks)
        for (y, x, height, width), id_ in strokes:
            image[y : y + height, x : x + width] = id_
        ambiguous = masks.ambiguous
        if area is not None:
            y, x, height, width = area
            ambiguous = np.zeros(SHAPE, bool)
            ambiguous[y : y + height, x : x + width] = True
        labels = edited(image, {k: v for k, v in classes.items() if (image == k).any()})
        again = load(saved(before, labels, ambiguous))
    # Ids are running numbers of the file; objects are told by their pixels.
    assert len(again.labels) == len(labels)
    for row in range(len(labels)):
        number = np.unique(again.labels.index[labels.index == row + 1])
        assert len(number) == 1
        assert np.array_equal(again.labels.index == number[0], labels.index == row + 1)
        assert again.labels.class_index[number[0] - 1] == labels.class_index[row]
    assert again.ambiguous is not None
    assert ambiguous is not None
    assert np.array_equal(again.ambiguous, ambiguous)


def test_from_another_form_it_is_written_anew(tmp_path: Path) -> None:
    masks = load(original(tmp_path))
    objects = Objects(masks.labels, Side.REFERENCE, "R", "", None, MONUSAC_CLASSES, None)
    geojson = MaskFiles(Source.GEOJSON, {"": (tmp_path / "none.geojson",)})
    write_objects(tmp_path / "a.xml", replace(objects, original=geojson))
    assert np.array_equal(load(tmp_path / "a.xml").labels.index, masks.labels.index)
