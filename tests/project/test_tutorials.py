"""The tutorials are done here: each command prints what its page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from napari_panoptic.cli.main import main
from tests.support.paths import REPOSITORY

PAGES = sorted((REPOSITORY / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def done(command: str) -> int:
    try:
        return main(shlex.split(command)[1:])
    except SystemExit as ended:
        return int(ended.code or 0)


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.usefixtures("no_plots")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_print_what_the_page_says(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    printed, n_done = "", 0
    for language, block in BLOCK.findall(page.read_text("utf-8")):
        if language == "text":
            lines = [words(line) for line in block.splitlines()]
            assert [line for line in lines if line not in printed] == []
            continue
        printed = ""
        # Windows are opened by other tests; on what a tutorial opens, here too.
        for command in (line for line in block.splitlines() if " view " not in line):
            assert done(command) in (0, 4), command
            printed += " " + words(capsys.readouterr().out)
            n_done += 1
    assert n_done
