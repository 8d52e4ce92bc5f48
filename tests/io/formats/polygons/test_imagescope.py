from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.progress import StoppedError
from napari_panoptic.io.formats.one_file import stated_classes
from napari_panoptic.io.formats.polygons import imagescope
from napari_panoptic.io.formats.polygons.imagescope import write_annotation
from napari_panoptic.values.cohort import MONUSAC_CLASSES, ClassScheme, Source
from tests.support.builders import (
    annotation_xml,
    square,
    write_xml,
)
from tests.support.examples import examples
from tests.support.outlines import Annotation, read_annotation, read_outlines, stopped


def read(tmp_path: Path, text: str | bytes) -> Annotation:
    path = tmp_path / "a.xml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_annotation(path, MONUSAC_CLASSES)


def only(annotation: Annotation, kind: FindingKind) -> Finding:
    (finding,) = [finding for finding in annotation.findings if finding.kind is kind]
    return finding


def test_polygons_come_in_document_order_with_running_ids(tmp_path: Path) -> None:
    path = write_xml(
        tmp_path / "ä.xml",
        ("Neutrophil", [square(1, 2)]),
        ("Nonsense", [square(0, 0), square(5, 5)]),
        ("Ambiguous", [square(7, 7)]),
        ("epithelial ", [[("1.5", "2.75"), (3, 4), (5, 1)]]),
    )
    annotation = read_annotation(path, MONUSAC_CLASSES)
    found = [(p.id, p.class_name) for p in annotation.polygons]
    assert found == [(1, "Neutrophil"), (4, "Ambiguous"), (5, "Epithelial")]
    np.testing.assert_array_equal(
        annotation.polygons[2].vertices_xy, [(1.5, 2.75), (3.0, 4.0), (5.0, 1.0)]
    )
    assert annotation.mpp == 0.25
    finding = only(annotation, FindingKind.UNKNOWN_CLASS)
    assert (finding.count, finding.class_name, finding.object_ids) == (2, "Nonsense", (2, 3))
    assert "Nonsense" in finding.message
    assert finding.path == path


def test_class_names_are_found_where_programs_put_them(tmp_path: Path) -> None:
    text = annotation_xml(("Description", [square(0, 0)]))
    text = text.replace('Id="1" Name=""', 'Id="1" Name="Macrophage"')
    assert [p.class_name for p in read(tmp_path, text).polygons] == ["Macrophage"]
    nameless = read(tmp_path, annotation_xml(("", [square(0, 0)])))
    assert "without a class name" in only(nameless, FindingKind.UNKNOWN_CLASS).message
    scheme = replace(MONUSAC_CLASSES, aliases={"": "Macrophage"})
    path = write_xml(tmp_path / "unnamed.xml", ("", [square(0, 0)]))
    assert [p.class_name for p in read_annotation(path, scheme).polygons] == ["Macrophage"]


def test_aliases_count_as_their_class(tmp_path: Path) -> None:
    path = write_xml(tmp_path / "a.xml", ("Tumour", [square(0, 0)]))
    scheme = ClassScheme(("Epithelial",), ((1, 2, 3),), aliases={"tumour": "Epithelial"})
    assert [p.class_name for p in read_annotation(path, scheme).polygons] == ["Epithelial"]


def test_a_file_without_regions_annotates_nothing(tmp_path: Path) -> None:
    annotation = read(tmp_path, annotation_xml(("Epithelial", []), root="Annotations"))
    assert (annotation.polygons, annotation.mpp, annotation.findings) == ((), None, ())


@pytest.mark.parametrize("value", ["", "0", "-1", "nan", "inf", "a quarter"])
def test_a_bad_resolution_is_no_resolution(tmp_path: Path, value: str) -> None:
    annotation = read(tmp_path, annotation_xml(root=f'Annotations MicronsPerPixel="{value}"'))
    assert annotation.mpp is None
    assert f"'{value}'" in only(annotation, FindingKind.NO_MPP).message


def test_odd_polygons_are_kept_and_reported(tmp_path: Path) -> None:
    polygons = [
        square(0, 0),
        [(3, 3), (3, 3)],
        [(0, 0), (4, 4), (4, 0), (0, 4)],
        [(0, 0), ("x", 1), ("", ""), ("nan", 2), ("1e300", 3), (9, 0), (9, 9)],
        [],
    ]
    annotation = read(tmp_path, annotation_xml(("Epithelial", polygons)))
    assert [len(p.vertices_xy) for p in annotation.polygons] == [4, 2, 4, 3, 0]
    assert only(annotation, FindingKind.DEGENERATE).object_ids == (2, 5)
    assert only(annotation, FindingKind.SELF_CROSSING).object_ids == (3,)
    assert only(annotation, FindingKind.UNREADABLE).object_ids == (4,)


def test_a_vertex_without_coordinates(tmp_path: Path) -> None:
    text = annotation_xml(("Epithelial", [square(0, 0)])).replace('X="4" ', "", 1)
    annotation = read(tmp_path, text)
    assert len(annotation.polygons[0].vertices_xy) == 3
    assert only(annotation, FindingKind.UNREADABLE).object_ids == (1,)


def regions(tmp_path: Path, *attributes: str) -> Annotation:
    """Read one region of two corners, 2, 3 and 12, 9, for each of the attributes."""
    corners = [(2, 3), (12, 9)]
    text = annotation_xml(("Epithelial", [corners] * len(attributes)))
    for own in attributes:
        text = text.replace('<Region Id="1">', f"<Region {own}>", 1)
    return read(tmp_path, text)


def test_what_outlines_no_nucleus_is_left_out_and_keeps_its_number(tmp_path: Path) -> None:
    kinds = ('Type="0"', 'Type="3"', 'Type="4"', 'Type="0" NegativeROA="1"', 'Type="2"')
    annotation = regions(tmp_path, *kinds, 'Type="4"')
    assert [polygon.id for polygon in annotation.polygons] == [1, 5]
    found = {f.object_ids: f for f in annotation.findings if f.kind is FindingKind.FALLBACK}
    assert found.keys() == {(2,), (3, 6), (4,)}
    for ids, word in [((2,), "arrow"), ((3, 6), "ruler"), ((4,), "negative region")]:
        assert word in found[ids].message
        assert "left out" in found[ids].message


def test_ellipses_and_rectangles_fill_their_box(tmp_path: Path) -> None:
    annotation = regions(tmp_path, 'Type="1"', 'Type="2"')
    assert annotation.findings == ()
    box, round_ = (polygon.vertices_xy for polygon in annotation.polygons)
    np.testing.assert_array_equal(box, [(2, 3), (12, 3), (12, 9), (2, 9)])
    np.testing.assert_array_equal(round_.min(axis=0), (2, 3))
    np.testing.assert_array_equal(round_.max(axis=0), (12, 9))
    distance = np.hypot((round_[:, 0] - 7) / 5, (round_[:, 1] - 6) / 3)
    np.testing.assert_allclose(distance, 1, atol=0.001)


ENTITIES = """<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><Annotations>&b;</Annotations>"""
EXTERNAL = """<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<Annotations>&a;</Annotations>"""
WHOLE = annotation_xml(("Epithelial", [square(0, 0), square(9, 9)]))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty file"),
        (WHOLE[: len(WHOLE) // 2], "cut off or damaged"),
        (WHOLE[:-3], "cut off or damaged"),
        ("not XML at all", "cut off or damaged"),
        (b"\x00\x01\x02\xff\xfe", "cut off or damaged"),
        ("<ASAP_Annotations/>", "<ASAP_Annotations>, an XML file of another program"),
        ("<html><body/></html>", "another program"),
        (ENTITIES, "entities"),
        (EXTERNAL, "entities"),
        (ENTITIES.encode("utf-16"), "entities"),
    ],
)
def test_what_is_no_annotation(tmp_path: Path, text: str | bytes, words: str) -> None:
    with pytest.raises(UnreadableFileError, match=words) as caught:
        read(tmp_path, text)
    assert caught.value.path == tmp_path / "a.xml"


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="no such file"):
        read_annotation(tmp_path / "a.xml", MONUSAC_CLASSES)


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (WHOLE.replace("Id=", "Text='é' Id=").encode("cp1252"), "Windows-1252"),
        (WHOLE.replace("UTF-8", "UTF-99").encode(), "UTF-8"),
        (WHOLE.encode("utf-16"), "UTF-16"),
    ],
)
def test_files_in_another_encoding_than_they_claim(
    tmp_path: Path, data: bytes, encoding: str
) -> None:
    annotation = read(tmp_path, data)
    assert len(annotation.polygons) == 2
    assert encoding in only(annotation, FindingKind.FALLBACK).message


def test_utf_16_that_says_so_is_nothing_odd(tmp_path: Path) -> None:
    annotation = read(tmp_path, WHOLE.replace("UTF-8", "UTF-16").encode("utf-16"))
    assert (len(annotation.polygons), annotation.findings) == (2, ())


coordinate = st.floats(-1e6, 1e6, allow_nan=False)
name = st.sampled_from([*MONUSAC_CLASSES.names, "Ambiguous"])


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(name, st.lists(st.tuples(coordinate, coordinate), max_size=6)), max_size=8),
    st.none() | st.floats(1e-3, 10),
)
def test_what_was_written_is_read_exactly(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: list[tuple[str, list[tuple[float, float]]]],
    mpp: float | None,
) -> None:
    outlines = [
        (class_name, np.array(points, dtype=np.float64).reshape(-1, 2))
        for class_name, points in drawn
    ]
    path = tmp_path_factory.mktemp("xml") / "a.xml"
    write_annotation(path, outlines, mpp)
    annotation = read_annotation(path, MONUSAC_CLASSES)
    assert annotation.mpp == mpp
    assert [p.id for p in annotation.polygons] == list(range(1, len(outlines) + 1))
    for found, (class_name, vertices) in zip(annotation.polygons, outlines, strict=True):
        assert found.class_name == class_name
        np.testing.assert_array_equal(found.vertices_xy, vertices)


def test_class_names_with_special_characters(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    scheme = ClassScheme(("<A> & \"B\" 'é'",), ((1, 2, 3),))
    write_annotation(path, [(scheme.names[0], np.array(square(0, 0), dtype=float))])
    assert read_annotation(path, scheme).polygons[0].class_name == scheme.names[0]


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    write_annotation(path, [])
    before = path.read_bytes()
    broken = np.array([["a", "b"]])
    with pytest.raises(TypeError):
        write_annotation(path, [("Epithelial", broken)])  # type: ignore[list-item]
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# --- whatever stands in a file, against the standard library -------------------------------------


def oracle(text: str) -> list[tuple[int, str | None, list[tuple[float, float]]]]:
    """Read id, class and vertices with the standard library, element by element."""
    found = []
    for layer in ElementTree.fromstring(text.encode()).iter("Annotation"):  # noqa: S314
        names = [a.get("Name", "") for a in layer.iterfind("Attributes/Attribute")]
        known = [n for name in names if (n := MONUSAC_CLASSES.canonical(name))]
        for region in layer.iterfind("Regions/Region"):
            points = []
            for vertex in region.iterfind("Vertices/Vertex"):
                try:
                    point = float(vertex.get("X", "")), float(vertex.get("Y", ""))
                except ValueError:
                    continue
                if max(abs(v) for v in point) <= 2**29:
                    points.append(point)
            found.append((len(found) + 1, known[0] if known else None, points))
    return [(id_, name, points) for id_, name, points in found if name]


def random_document(seed: int, *, oddity: str = "") -> str:
    """Write a plain document, with one thing odd if asked for."""
    generator = np.random.default_rng(seed)
    space = ["", "\n", "\r\n\t", "  "][seed % 4]
    lines = ['<?xml version="1.0" encoding="utf-8"?>', '<Annotations MicronsPerPixel="0.5">']
    for name in generator.choice([*MONUSAC_CLASSES.names, "Ambiguous", "Ünknown"], 4):
        lines.append(f'<Annotation Name=""><Attributes><Attribute Name="{name}"/></Attributes>')
        lines.append("<Regions><RegionAttributeHeaders/>")
        for number in range(generator.integers(0, 9)):
            points = generator.normal(20, 9, (generator.integers(0, 12), 2))
            digits = int(generator.integers(0, 17))
            vertices = [f'<Vertex X="{x:.{digits}f}" Y="{y:.{digits}f}" Z="0"/>' for x, y in points]
            if oddity and number == 2:
                vertices.insert(len(vertices) // 2, oddity)
            text = space.join(vertices)
            lines.append(f'<Region Text="a > {number}" Id="1"><Vertices>{space}{text}</Vertices>')
            lines.append("</Region>")
        lines.append("</Regions></Annotation>")
    return space.join([*lines, "</Annotations>", ""])


def found_in(path: Path) -> list[tuple[int, str | None, list[tuple[float, float]]]]:
    polygons = read_annotation(path, MONUSAC_CLASSES).polygons
    return [(p.id, p.class_name, [(x, y) for x, y in p.vertices_xy.tolist()]) for p in polygons]


ODDITIES = [
    '<!-- <Vertex X="1" Y="2"/> -->',
    '<?pi <Vertex X="1" Y="2"/> ?>',
    '<![CDATA[<Vertex X="1" Y="2"/>]]>',
    '<Vertex Y="1" X="2"/>',
    "<Vertex X='1' Y='2'/>",
    '<Vertex X="1e1" Y="2"/>',
    '<Vertex X="&#49;" Y="2"/>',
    '<Vertex X="nan" Y="2"/>',
    '<Vertex X="" Y="2"/>',
    '<Vertex X=" 1" Y="1_0"/>',
    '<Vertex X="1" Y="2" W="3"/>',
    '<Vertex X="1" Y="2"></Vertex>',
    '<Vertex X="1" Y="2"><Vertex X="3" Y="4"/></Vertex>',
    '<Vertex X="600000000" Y="2"/>',
    '<Vertex X="0.1000000000000000055511151231257827" Y="2"/>',
    "<Vertex/>",
    '<Other><Vertex X="1" Y="2"/></Other>',
    "words between",
]


@pytest.mark.parametrize("oddity", ["", *ODDITIES])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_between_vertices_is_read_as_a_parser_does(
    tmp_path: Path, seed: int, oddity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = random_document(seed, oddity=oddity)
    path = tmp_path / "a.xml"
    path.write_bytes(text.encode())
    expected = oracle(text)
    assert found_in(path) == expected
    monkeypatch.setattr(imagescope, "BLOCK_BYTES", 73 + seed)
    assert found_in(path) == expected


def test_reading_tells_how_far_it_is_and_can_be_stopped(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(random_document(2).encode())
    told: list[tuple[int, int]] = []
    read_outlines(
        Source.IMAGESCOPE,
        path,
        MONUSAC_CLASSES,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told[-1] == (path.stat().st_size, path.stat().st_size)
    with pytest.raises(StoppedError):
        read_outlines(Source.IMAGESCOPE, path, progress=stopped)


def test_a_layer_inside_a_region_is_damage(tmp_path: Path) -> None:
    text = annotation_xml(("Epithelial", [square(0, 0)]))
    text = text.replace("</Vertices>", "</Vertices><Annotation/>")
    with pytest.raises(UnreadableFileError, match="inside a Region"):
        read(tmp_path, text)


def described(name: str, description: str) -> str:
    """Write a layer as ImageScope itself does."""
    text = annotation_xml(("?", [square(1, 1)]))
    text = text.replace('Name=""', f'Name="{name}"')
    return text.replace(
        '<Attribute Name="?"/>', f'<Attribute Name="Description" Id="0" Value="{description}"/>'
    )


def test_a_layer_without_a_name_is_called_as_it_is_described(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(described("", "lymphocyte"))
    read = read_outlines(Source.IMAGESCOPE, path)
    assert read.polygons.class_index.tolist() == [2]
    assert read.findings == ()


@pytest.mark.parametrize(("description", "called"), [("Stroma", "Stroma"), ("", None)])
def test_an_unknown_description_is_listed(
    description: str, called: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "a.xml"
    path.write_text(described("", description))
    (finding,) = read_outlines(Source.IMAGESCOPE, path).findings
    assert finding.class_name == called


def test_a_description_without_a_value_names_no_class(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(described("", ""))
    scheme = ClassScheme(("Nucleus",), ((1, 2, 3),))
    assert read_outlines(Source.IMAGESCOPE, path, scheme).polygons.class_index.tolist() == [1]
    assert stated_classes(path, Source.IMAGESCOPE) == ()
    named = replace(MONUSAC_CLASSES, aliases={"Description": "Lymphocyte"})
    assert read_outlines(Source.IMAGESCOPE, path, named).polygons.class_index.tolist() == [2]


def test_a_name_goes_before_a_description(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(described("Epithelial", "Lymphocyte"))
    assert read_outlines(
        Source.IMAGESCOPE, path, MONUSAC_CLASSES
    ).polygons.class_index.tolist() == [1]
    path.write_text(described("Tumour", "Lymphocyte"))
    (finding,) = read_outlines(Source.IMAGESCOPE, path).findings
    assert finding.class_name == "Tumour"


def test_decimal_commas_are_named(tmp_path: Path) -> None:
    vertices = "".join(f'<Vertex X="{x},5" Y="{y},5"/>' for x, y in ((1, 1), (9, 1), (9, 9)))
    path = tmp_path / "a.xml"
    path.write_text(
        f'<Annotations><Annotation><Attributes><Attribute Name="Epithelial"/></Attributes>'
        f"<Regions><Region><Vertices>{vertices}</Vertices></Region></Regions></Annotation>"
        f"</Annotations>"
    )
    found = read_outlines(Source.IMAGESCOPE, path)
    assert any("decimal comma" in finding.message for finding in found.findings)
