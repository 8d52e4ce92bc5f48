"""The page of a package as a file: its size, its policy, its pictures and what it hides."""

import base64
import io
import re

import numpy as np
import pytest
from matplotlib.path import Path as Polygon
from PIL import Image

from napari_panoptic.cli.main import main
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.snapshots import load_region
from napari_panoptic.report.package.drawing import ITEM_BYTES, LONGEST_SIDE_PX, drawn
from napari_panoptic.review.package.choosing import ItemQuestion
from napari_panoptic.review.plan.units import TILE_PX
from napari_panoptic.values.vocabulary import Side
from tests.support.builders import noise, write_svs, write_tiff, write_xml
from tests.support.review_packages import READING, contents_of, data_of, write_small_package
from tests.support.small_cohort import REGIONS, TEAMS

MOST_BYTES, ITEMS = 25 * 10**6, 300
LINE = re.compile(r"(-?\d+) (-?\d+)((?:[a-h]\d*)+);")


def corners_of(lines):
    """Yield the corners x, y of each closed line in px."""
    ways = {"a": (1, 0), "b": (0.5, 0.5), "c": (0, 1), "d": (-0.5, 0.5)}
    ways |= {chr(ord(way) + 4): (-x, -y) for way, (x, y) in ways.items()}
    for x, y, steps in LINE.findall(lines):
        corners = [(int(x) / 2, int(y) / 2)]
        for way, length in re.findall(r"([a-h])(\d*)", steps):
            by = np.multiply(ways[way], int(length or 1))
            corners.append(tuple(corners[-1] + by))
        yield corners


def filled(paths, width):
    """Return which pixels have their middle inside closed lines, by the even-odd rule."""
    y, x = np.indices((width, width)).reshape(2, -1)
    middles = np.stack([x + 0.5, y + 0.5], axis=1)
    inside = np.zeros(width * width, bool)
    for lines in paths.values():
        assert LINE.sub("", lines) == ""
        for corners in corners_of(lines):
            inside ^= Polygon([*corners, corners[0]]).contains_points(middles)
    return inside.reshape(width, width)


@pytest.mark.parametrize("side", Side)
def test_outlines_are_those_of_the_objects(small_folder, side):
    cohort = open_cohort(small_folder)
    name = REGIONS[0].name
    pair = load_region(cohort, name, READING.settings).evaluations["beta"].pair
    labels = pair.reference if side is Side.REFERENCE else pair.prediction
    questions = [ItemQuestion(str(i), "beta", name, side, i) for i in labels.ids.tolist()]
    found = list(drawn(cohort, questions, READING))
    assert len(found) == len(labels) > 4
    for row, each in enumerate(found, start=1):
        y, x = np.nonzero(labels.index == row)
        # The object is in the middle of the picture.
        middle = [(v.min() + v.max() + 1 - each.field_px) // 2 for v in (y, x)]
        field = np.zeros((each.field_px, each.field_px), int)
        rows, columns = np.indices(field.shape) + np.reshape(middle, (2, 1, 1))
        inside = (rows >= 0) & (columns >= 0)
        inside &= (rows < labels.index.shape[0]) & (columns < labels.index.shape[1])
        field[inside] = labels.index[rows[inside], columns[inside]]
        outlined = each.outlines[side]
        concerned = filled(outlined.concerned, each.field_px)
        assert np.array_equal(concerned | filled(outlined.beside, each.field_px), field > 0)
        assert (field[concerned] == row).any()
        others = set(np.unique(field[concerned])) - {row}
        assert not others or side is not each.item.target.side or len(each.classes[side]) >= 1
        for shorter, is_theirs in sides_of(outlined, each.field_px):
            inside = np.unique(field[is_theirs])
            for label in inside[inside > 0]:
                v, u = np.nonzero(labels.index == label)
                assert shorter == min(np.ptp(v) + 1, np.ptp(u) + 1, LONGEST_SIDE_PX)


def sides_of(outlined, width):
    """Yield the shorter side of objects, and which pixels are theirs."""
    for paths in (outlined.concerned, outlined.beside):
        for shorter, lines in paths.items():
            yield shorter, filled({shorter: lines}, width)


def test_a_tile_is_the_one_of_the_grid_that_holds_the_point(tmp_path):
    folder = tmp_path / "MoNuSAC Testing Data and Annotations" / "P"
    tissue = noise(150, 200)
    tissue[64:128, 128:192] = 255
    write_svs(folder / "P_1.svs", tissue, mpp=0.25)
    write_xml(folder / "P_1.xml", ("Epithelial", [[(130, 70), (140, 70), (140, 80), (130, 80)]]))
    write_tiff(tmp_path / "Teams/T/P/P_1_mask.png.tif", np.zeros((150, 200, 3), np.uint8))
    (found,) = drawn(
        open_cohort(tmp_path), [ItemQuestion("1", "T", "P_1", None, None, 100.0, 128.0)], READING
    )
    x, y, width = found.close_up
    assert width == TILE_PX == 64
    with Image.open(io.BytesIO(found.jpeg)) as picture:
        pixels = np.asarray(picture)
    assert pixels[y : y + width, x : x + width].mean() > 250
    assert pixels[y : y + width, x + width : x + width + 8].mean() < 200
    assert found.item.target is None
    assert filled(found.outlines[Side.REFERENCE].beside, found.field_px)[y + 8, x + 4]


def test_300_items_fit_even_where_pictures_compress_badly(tmp_path):
    folder = tmp_path / "MoNuSAC Testing Data and Annotations" / "P"
    random = np.random.default_rng(5)
    write_svs(folder / "P_1.svs", random.integers(0, 256, (600, 600, 3), dtype=np.uint8), mpp=0.25)
    squares = [
        [(x, y), (x + 9, y), (x + 9, y + 9), (x, y + 9)]
        for x in range(0, 590, 14)
        for y in range(0, 590, 14)
    ]
    large = [(150, 150), (400, 150), (400, 400), (150, 400)]
    write_xml(folder / "P_1.xml", ("Epithelial", [*squares, large]))
    write_tiff(tmp_path / "Teams/T/P/P_1_mask.png.tif", np.zeros((600, 600, 3), np.uint8))
    cohort = open_cohort(tmp_path)
    page = write_small_package(tmp_path / "one.html", cohort, 2)
    few = write_small_package(tmp_path / "two.html", cohort, 1)
    sizes = [path.stat().st_size for path in (few, page)]
    assert sizes[0] + (ITEMS - 1) * (sizes[1] - sizes[0]) < MOST_BYTES
    data = data_of(page)
    with Image.open(io.BytesIO(base64.b64decode(data["pictures"][0]))) as picture:
        assert min(picture.size) >= 224
    assert 0.5 * ITEM_BYTES < len(base64.b64decode(data["pictures"][0])) <= ITEM_BYTES


def text_of(page):
    """Give everything of a page but base64, in which any short word can occur."""
    return re.sub(r"[A-Za-z0-9+/=]{200,}", "", page.read_text("utf-8"))


def test_a_blind_page_shows_neither_teams_nor_outcomes(small_folder, tmp_path):
    cohort = open_cohort(small_folder)
    seen = text_of(write_small_package(tmp_path / "seen.html", cohort, 1000))
    path = write_small_package(tmp_path / "blind.html", cohort, 1000, is_blind=True)
    blind = text_of(path)
    for word in (*TEAMS, "Outcome", "FN (missed)"):
        assert word in seen
        assert word not in blind
    assert {item.team for item in contents_of(path).items} == set(TEAMS)


def test_the_same_command_writes_the_same_page(small_folder, tmp_path):
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    for page in pages:
        command = ["package", str(small_folder), "--failures", "6", "--blind", "-o", str(page)]
        assert main(command) == 0
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert main([*command, "--seed", "1"]) == 0
    assert contents_of(pages[0]).items != contents_of(pages[1]).items


def test_two_teams_are_shown_side_by_side(small_folder, tmp_path, capsys):
    page = tmp_path / "ab.html"
    command = [
        "package",
        str(small_folder),
        "--failures",
        "4",
        "--compare",
        "alpha,beta",
        "-o",
        str(page),
    ]
    assert main(command) == 0
    assert "8 items written" in capsys.readouterr().out
    data, items = data_of(page), contents_of(page).items
    assert data["questions"] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    for first, second in data["questions"]:
        assert items[first].target == items[second].target
        assert {items[first].team, items[second].team} == set(TEAMS)
        assert data["items"][first]["picture"] == data["items"][second]["picture"]
    assert "alpha" not in text_of(page)


def test_an_item_of_a_plan_that_is_not_there_stops_it(small_folder, tmp_path, capsys):
    plan = tmp_path / "plan.csv"
    header = "item,team,patient,region,side,id,y_px,x_px,stratum,probability"
    plan.write_text(f"{header}\n1,alpha,P,{REGIONS[0].name},reference,999,1,1,s,1\n")
    page = tmp_path / "review.html"
    assert main(["package", str(small_folder), "--plan", str(plan), "-o", str(page)]) == 1
    assert "has no such object" in capsys.readouterr().err
    assert not page.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--failures", "3", "--compare", "alpha"], "expected two teams"),
        (["--failures", "3", "--compare", "alpha,gamma"], "no team 'gamma'"),
        (["--failures", "3", "--compare", "alpha,beta", "--teams", "alpha"], "leave --teams out"),
        (["--failures", "0"], "at least 1"),
        ([], "--plan --failures is required"),
    ],
)
def test_mistakes_in_the_arguments(small_folder, tmp_path, capsys, options, message):
    with pytest.raises(SystemExit) as ended:
        main(["package", str(small_folder), "-o", str(tmp_path / "review.html"), *options])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
