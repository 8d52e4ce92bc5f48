"""The recipe for conda-forge, and the citation, state what pyproject.toml states."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any

import yaml
from packaging.requirements import Requirement

from tests.support.paths import REPOSITORY

RECIPE = yaml.safe_load((REPOSITORY / "conda-recipe" / "recipe.yaml").read_text("utf-8"))
PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
PROJECT: dict[str, Any] = PYPROJECT["project"]
CONDA_NAMES = {
    "matplotlib": "matplotlib-base",
    "napari": "napari-base",  # without what napari's own extras bring
    "openslide-bin": "openslide",
}
QT = {"pyqt6", "pyside6"}


def as_conda(requirements: Iterable[str]) -> set[str]:
    """Write requirements as conda does."""
    parsed = [Requirement(text) for text in requirements]
    return {f"{CONDA_NAMES.get(each.name, each.name)} {each.specifier}" for each in parsed}


def test_dependencies() -> None:
    run = RECIPE["requirements"]["run"]
    assert set(run) == as_conda(PROJECT["dependencies"]) | {"python"}
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert RECIPE["build"]["skip"] == f'match(python, "<{oldest}")'


def test_extras() -> None:
    extras = PROJECT["optional-dependencies"]
    expected = [text for name, own in extras.items() if name not in QT for text in own]
    assert set(RECIPE["requirements"]["run_constraints"]) == as_conda(expected)


def test_build_dependencies() -> None:
    host = RECIPE["requirements"]["host"]
    assert set(host) == as_conda(PYPROJECT["build-system"]["requires"]) | {"python", "pip"}


def test_metadata() -> None:
    about, urls = RECIPE["about"], PROJECT["urls"]
    assert RECIPE["package"]["name"] == PROJECT["name"]
    assert RECIPE["context"]["version"] == PROJECT["version"]
    assert about["summary"] == PROJECT["description"]
    assert about["license"] == PROJECT["license"]
    assert about["documentation"] == urls["Documentation"]
    assert about["repository"] == urls["Source Code"]


def test_citation() -> None:
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["repository-code"] == PROJECT["urls"]["Source Code"]
