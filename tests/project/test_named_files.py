"""The documentation names files, folders and modules of this repository that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.paths import REPOSITORY

PACKAGE = REPOSITORY / "napari_panoptic"
DOCS = REPOSITORY / "docs"
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted(DOCS.rglob("*.md")),
]
#: Names in backticks that are the user's files and folders, not this repository's.
OF_THE_USER = {
    "cohort.toml",
    "data.yaml",
    "nuclei_circles.py",
    "panoptic/",
    "Submissions/",
    "Teams/",
    "Teams/TEAM/atypia/",
    "Teams/TEAM/mitosis/",
}
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*(?:\.(?:py[ix]?|pxd|md|toml|yaml|sh)|/)")
DOTTED = re.compile(r"\w+(?:\.\w+)+")


def is_for_developers(page: Path) -> bool:
    """Return whether a page may shorten paths, such as `kit/keys.py`."""
    return page.name.startswith("developers") or page.parent.name == "decisions"


def names_in_backticks(page: Path) -> list[str]:
    """Return what a page has in single backticks, outside blocks of code."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`([^`\n]+)`", text)


def files_below(folder: Path) -> set[str]:
    """Return the files below a folder, and their folders with a slash, relative to it."""
    found = set()
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        if path.is_file() and "__pycache__" not in relative.parts:
            found.add(relative.as_posix())
            found |= {f"{parent.as_posix()}/" for parent in relative.parents[:-1]}
    return found


def exists(name: str) -> bool:
    """Return whether a file, or a folder with files, is at a path from the root or the package."""
    for root in (REPOSITORY, PACKAGE):
        path = root / name
        if path.is_file() or (name.endswith("/") and path.is_dir() and files_below(path)):
            return True
    return False


def fault_of_path(name: str, *, shortened: bool) -> str:
    """Return what is wrong with a path of this repository, or an empty string."""
    if exists(name):
        return ""
    last = name.rstrip("/").rpartition("/")[2]
    inside = sorted(path for path in files_below(PACKAGE) if f"/{path}".endswith(f"/{name}"))
    if len(inside) > 1:
        return f"`{name}` can be any of {', '.join(inside)}: write more of its path"
    if inside:
        return "" if shortened else f"`{name}` is {inside[0]}: write the whole path"
    moved = [
        f"{folder}/{path}"
        for folder in ("napari_panoptic", "tests", "benchmarks", "scripts")
        for path in sorted(files_below(REPOSITORY / folder))
        if Path(path).name == last
    ]
    hint = f" (moved to {' or '.join(moved)}?)" if moved else ""
    return f"`{name}` does not exist{hint}: write its present name, or describe it in words"


def fault_of_module(name: str) -> str:
    """Return what is wrong with a dotted name of this repository, or an empty string."""
    parts = name.split(".")
    root = REPOSITORY if (REPOSITORY / parts[0]).is_dir() else PACKAGE
    path = root
    while parts and (path / parts[0]).is_dir():
        path /= parts.pop(0)
    if parts and (path / f"{parts[0]}.py").is_file():
        path /= f"{parts.pop(0)}.py"
    module = path if path.is_file() else path / "__init__.py"
    if parts and not re.search(rf"\b{parts[0]}\b", module.read_text("utf-8")):
        return f"`{name}` does not exist: {module.relative_to(REPOSITORY)} has no {parts[0]}"
    return ""


def is_module(name: str) -> bool:
    """Return whether a dotted name can only be one of this repository's modules."""
    first, *others = name.split(".")
    if first in {"napari_panoptic", "benchmarks"}:
        return True
    # Two words can be a key of a file, such as `raters.labels` of a cohort.toml.
    return len(others) > 1 and (PACKAGE / first).is_dir()


def faults(page: Path) -> list[str]:
    """Return the names on a page that lead nowhere, each with what is wrong."""
    found = []
    for name in dict.fromkeys(names_in_backticks(page)):
        if name in OF_THE_USER:
            continue
        if PATH.fullmatch(name):
            found.append(fault_of_path(name, shortened=is_for_developers(page)))
        elif DOTTED.fullmatch(name) and is_module(name):
            found.append(fault_of_module(name))
    return [fault for fault in found if fault]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_named_files_exist(page: Path) -> None:
    found = faults(page)
    assert not found, f"{page.relative_to(REPOSITORY)}: " + "; ".join(found)


def test_faults_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`io/formats/format.py`, `nuclei/`, `pyproject.toml`, `live.session.Session`,\n"
        "`old/registry.py`, `formats/registry.py`, `session.py`, `live.session.Gone`\n"
        "```\n`in/a/block.py`\n```\n",
        encoding="utf-8",
    )
    moved, short, several, gone = faults(page)
    assert "moved to napari_panoptic/io/formats/registry.py" in moved
    assert "write the whole path" in short
    assert "write more of its path" in several
    assert "has no Gone" in gone
    assert fault_of_path("formats/registry.py", shortened=True) == ""


def test_the_guide_lists_every_folder() -> None:
    text = (DOCS / "developers.md").read_text("utf-8")
    tree = re.search(r"^```\nnapari_panoptic/\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert tree
    listed = re.findall(r"^  ([\w.]+/?) ", tree[1], flags=re.MULTILINE)
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert {name.rstrip("/") for name in listed if name.endswith("/")} == folders
    assert all((PACKAGE / name).exists() for name in listed)
