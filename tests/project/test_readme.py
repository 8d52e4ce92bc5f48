"""What the README tells people to run is run here."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from napari_panoptic.cli.main import command_parser, main
from tests.support.paths import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [
    shlex.split(line, comments=True)
    for language, block in BLOCKS
    if language == "sh"
    for line in block.splitlines()
    if line.startswith("napari-panoptic ")
]


def test_the_python_example_gives_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = [block for language, block in BLOCKS if language == "python"]
    exec(compile(example, "README.md", "exec"), {})  # noqa: S102 - the example is the test
    printed = capsys.readouterr().out.splitlines()
    (promised,) = re.findall(r"print\(.*\)  # (.*)", example)
    assert printed[0] == promised
    assert "TP" in printed[-1]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_is_understood(command: list[str]) -> None:
    assert command_parser().parse_args(command[1:]).command == command[1]


@pytest.fixture(scope="module")
def sample(nuclei_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(nuclei_sample, tmp_path_factory.mktemp("readme") / "cohort")


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c[1] == "evaluate"], ids=lambda c: " ".join(c)
)
def test_evaluate_works_on_the_sample(command: list[str], sample: Path, tmp_path: Path) -> None:
    places = {"COHORT": str(sample), "TABLES": str(tmp_path)}
    assert main([places.get(word, word) for word in command[1:]]) == 0
    assert (tmp_path / "evaluation.json").is_file()


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (REPOSITORY / target).exists(), target


def test_the_make_targets_exist() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`?make (\w+)`?", README):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
