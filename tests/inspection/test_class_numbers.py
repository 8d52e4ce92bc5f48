"""Numbers of classes that no file names: which name each got, and the order that fits best."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest

from napari_panoptic import notebook
from napari_panoptic.common.findings import FindingKind
from napari_panoptic.inspection.inspect import inspect_folder
from napari_panoptic.values.settings import EvaluationSettings
from tests.support import planted_import as planted

SETTINGS = EvaluationSettings(distances=False)
CLASSES = ("Epithelial", "Lymphocyte", "Neutrophil", "Macrophage")
OTHER = ("Lymphocyte", "Epithelial", "Neutrophil", "Macrophage")


@pytest.fixture(scope="module")
def clean(nuclei_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the clean cohort, read from masks."""
    folder = planted.write_clean(tmp_path_factory.mktemp("planted") / "clean", nuclei_sample)
    (folder / "cohort.toml").write_text(planted.MASKS)
    return folder


def number(folder: Path, team: str, order: tuple[str, ...]) -> None:
    """Give the objects of a team numbers of classes."""
    for path in (folder / "teams" / team).glob("*.csv"):
        text = path.read_text()
        for n, name in enumerate(order, start=1):
            text = text.replace(name, str(n))
        path.write_text(text)


@pytest.mark.parametrize("order", [CLASSES, OTHER])
def test_numbers_become_names_by_the_order_that_fits(
    order: tuple[str, ...], clean: Path, tmp_path: Path
) -> None:
    folder, right = shutil.copytree(clean, tmp_path / "cohort"), planted.objects_of(clean)
    number(folder, "alpha", order)
    found = notebook.open_cohort(folder).evaluate(settings=SETTINGS).findings
    orders = found[found["kind"] == FindingKind.CLASS_ORDER]
    # Once, although every region says so, with every number and its name.
    assert orders["team"].tolist() == ["alpha"]
    taken = "1 = Epithelial, 2 = Lymphocyte, 3 = Neutrophil and 4 = Macrophage"
    assert taken in orders["message"].iloc[0]
    assert (planted.objects_of(folder) == right) == (order == CLASSES)
    inspection = inspect_folder(folder)
    (doubt,) = inspection.doubts
    assert doubt.name == "numbers:alpha"
    assert taken in doubt.message
    best = [] if order == CLASSES else ["best"]
    assert [fix.name for fix in doubt.fixes] == [*best, "order"]
    fixed = inspection.with_fixes([doubt.fix()])
    assert fixed.doubts == ()
    fixed.save()
    table = tomllib.loads((folder / "cohort.toml").read_text())
    assert table["aliases"] == {str(n): name for n, name in enumerate(order, start=1)}
    assert planted.objects_of(folder) == right


def test_teams_with_different_numbers_need_tables_of_their_own(clean: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    number(folder, "alpha", CLASSES)
    number(folder, "beta", OTHER)
    doubts = inspect_folder(folder).doubts
    assert [doubt.name for doubt in doubts] == ["numbers:alpha", "numbers:beta"]
    assert all("Sides differ" in doubt.message and not doubt.fixes for doubt in doubts)


def test_numbers_that_aliases_name_are_checked_in_every_team(clean: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    number(folder, "alpha", CLASSES)
    inspection = inspect_folder(folder)
    inspection.with_fixes([doubt.fix() for doubt in inspection.doubts]).save()
    assert inspect_folder(folder).doubts == ()
    number(folder, "beta", OTHER)  # delivered after the numbers of alpha were named
    (doubt,) = inspect_folder(folder).doubts
    assert (doubt.name, doubt.fixes) == ("numbers:beta", ())
    assert "taken as [aliases] name them: 1 = Epithelial, 2 = Lymphocyte" in doubt.message
    assert "With 1 = Lymphocyte, 2 = Epithelial" in doubt.message
    assert "Sides differ" in doubt.message


def test_wrong_aliases_of_numbers_are_replaced(clean: Path, tmp_path: Path) -> None:
    folder, right = shutil.copytree(clean, tmp_path / "cohort"), planted.objects_of(clean)
    number(folder, "alpha", OTHER)
    aliases = "".join(f'{n} = "{name}"\n' for n, name in enumerate(CLASSES, start=1))
    (folder / "cohort.toml").write_text(f"{planted.MASKS}\n[aliases]\n{aliases}")
    inspection = inspect_folder(folder)
    (doubt,) = inspection.doubts
    assert [fix.name for fix in doubt.fixes] == ["best"]
    inspection.with_fixes([doubt.fix()]).save()
    assert inspect_folder(folder).doubts == ()
    assert planted.objects_of(folder) == right


def test_new_classes_have_colours_of_their_own(clean: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(clean, tmp_path / "cohort")
    for path in folder.rglob("*.csv"):
        path.write_text(path.read_text().replace("Lymphocyte", "Round"))
    for path in (folder / "annotation").glob("*.geojson"):
        text = path.read_text().replace("Lymphocyte", "Round").replace("Epithelial", "Long")
        path.write_text(json.dumps(json.loads(text)))
    inspection = inspect_folder(folder)
    names = [doubt for doubt in inspection.doubts if doubt.name.startswith("class:")]
    assert {doubt.name for doubt in names} == {"class:Round", "class:Long"}
    fixed = inspection.with_fixes([doubt.fix("new") for doubt in names])
    colours = fixed.cohort.scheme.colours
    assert len(set(colours)) == len(colours) == 6
