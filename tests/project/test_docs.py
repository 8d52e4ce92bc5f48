"""The documentation: its code runs, its links lead somewhere, its pages are all in the contents."""

from __future__ import annotations

import pkgutil
import re
import shutil
from pathlib import Path

import pytest

from napari_panoptic.cli.main import command_parser, main
from napari_panoptic.values.conventions import CONVENTIONS
from tests.support.paths import REPOSITORY

DOCS = REPOSITORY / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *REPOSITORY.glob("*.md")])
FENCES = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[tuple[str, str]]:
    """Give page and text of every block in a language; the README's have tests of their own."""
    return [
        (page.relative_to(REPOSITORY).as_posix(), text)
        for page in PAGES
        if page.name != "README.md" or page.parent != REPOSITORY
        for found, text in FENCES.findall(page.read_text(encoding="utf-8"))
        if found == language
    ]


PYTHON = [
    pytest.param(page, text, id=f"{page}-{n}") for n, (page, text) in enumerate(blocks("python"))
]
COMMANDS = sorted(
    {
        line.split("#")[0].strip().rstrip("\\").strip()
        for _, text in blocks("sh")
        for line in text.replace("\\\n", " ").splitlines()
        if line.startswith("napari-panoptic ")
    }
)


@pytest.fixture(scope="module")
def place(nuclei_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make what examples read: a cohort, and the tables of its evaluation."""
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(nuclei_sample, folder / "COHORT")
    tables = ["evaluate", str(folder / "COHORT"), "--output", str(folder / "TABLES")]
    assert main([*tables, "--no-distances", "--scheduler", "threads"]) == 0
    return folder


@pytest.mark.parametrize(("page", "text"), PYTHON)
def test_code_runs(page: str, text: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    exec(compile(text, page, "exec"), {"__name__": "example"})  # noqa: S102 - the docs are the test


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_understood(command: str) -> None:
    words = command.replace("…", "").split()
    assert command_parser().parse_args(words[1:]).command == words[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def anchors(page: Path) -> set[str]:
    """Give the names by which the headings of a page can be reached."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), flags=re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_links_lead_to_headings(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]*)\)", page.read_text("utf-8")):
        assert anchor in anchors(page.parent / target if target else page), f"{target}#{anchor}"


def test_the_reference_speaks_of_what_is_there() -> None:
    """A build of the documentation fails otherwise; it needs packages that the tests do not."""
    text = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"auto(?:class|function|module):: (\S+)\n((?: +.*\n|\n(?= ))*)", text)
    assert len(listed) > 5
    for name, below in listed:
        found = pkgutil.resolve_name(name)
        members = re.findall(r":members: (.+)", below)
        for member in [*", ".join(members).split(", "), *re.findall(r"automethod:: (\w+)", below)]:
            assert not member or hasattr(found, member), f"{name} has no {member}"


def test_every_page_is_in_the_contents() -> None:
    listed = set()
    for page in (DOCS / "index.md", DOCS / "decisions" / "README.md"):
        for contents in re.findall(
            r"^```\{toctree\}\n(.*?)^```", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
        ):
            names = [line for line in contents.splitlines() if line and line[0] != ":"]
            for name in names:  # a pattern, or one page
                found = {path.resolve() for path in page.parent.glob(f"{name}.md")}
                assert found, f"{name} of {page.name}"
                listed |= found
    missing = {page.resolve() for page in DOCS.rglob("*.md")} - listed - {DOCS / "index.md"}
    assert not missing


def test_conventions_are_described() -> None:
    text = (DOCS / "reference" / "conventions.md").read_text("utf-8")
    assert {name for name in CONVENTIONS if f"`{name}`" not in text} == set()


def test_the_tests_that_pages_name_are_there() -> None:
    there = "".join(path.read_text("utf-8") for path in (REPOSITORY / "tests").rglob("*.py"))
    for page in PAGES:
        for name in re.findall(r"`(test_\w+)`", page.read_text("utf-8")):
            assert f"def {name}(" in there, f"{name} of {page.name}"
