"""``napari-panoptic view --link``, up to the window."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.links import CohortKey, LinkMaker, ObjectLink
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer import launch
from napari_panoptic.viewer.kit import link_socket
from tests.support.commands import Run


@dataclass
class Windows:
    """Windows as the command sees them: those that are open, cohorts shown lately, and new ones."""

    open: list[CohortKey] = field(default_factory=list)
    recent: Cohort | None = None
    sent: list[tuple[ObjectLink, CohortKey]] = field(default_factory=list)
    opened: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)
    asked: list[ObjectLink] = field(default_factory=list)

    def send(self, link: ObjectLink, key: CohortKey) -> bool:
        self.sent.append((link, key))
        return key in self.open

    def view(self, cohort: Any, **options: Any) -> int:
        self.opened.append((cohort, options))
        return 0

    def ask(self, link: ObjectLink) -> int:
        self.asked.append(link)
        return 0


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> Windows:
    found = Windows()
    monkeypatch.setenv("DISPLAY", ":0")  # nothing gets as far as a window
    monkeypatch.setattr(link_socket, "send_link", found.send)
    monkeypatch.setattr(launch, "run_view", found.view)
    monkeypatch.setattr(launch, "run_link", found.ask)
    monkeypatch.setattr(launch, "recent_cohort", lambda _link: found.recent)
    return found


@pytest.fixture
def view(run: Run) -> Run:
    """Return a function that runs ``view``."""
    return partial(run, "view")


@pytest.fixture
def link(sample_cohort: Cohort) -> ObjectLink:
    return LinkMaker.of(sample_cohort).link("Sample-A_2", "merger", [(Side.REFERENCE, 3)])


def test_an_open_window_takes_the_link(view: Run, windows: Windows, link: ObjectLink) -> None:
    windows.open = [link.cohort]
    assert view("--link", link.text) == (
        0,
        f"opened in the window that shows {link.cohort.name}\n",
        "",
    )
    assert windows.sent == [(link, link.cohort)]
    assert not windows.opened


def test_the_cohort_that_is_given_is_opened(
    view: Run, windows: Windows, link: ObjectLink, nuclei_sample: Path
) -> None:
    assert view(nuclei_sample, "--link", link.text)[0] == 0
    ((opened, options),) = windows.opened
    assert (opened.root, options["link"]) == (nuclei_sample, link)
    windows.open = [link.cohort]
    assert view(nuclei_sample, "--link", link.text)[0] == 0
    assert len(windows.opened) == 1


def test_a_window_of_the_cohort_that_is_given_takes_links_to_other_versions(
    view: Run, windows: Windows, link: ObjectLink, sample_cohort: Cohort
) -> None:
    windows.open = [CohortKey.of(sample_cohort)]
    other = replace(link, cohort=replace(link.cohort, teams="000000"))
    assert view(sample_cohort.root, "--link", other.text)[0] == 0
    assert windows.sent == [(other, CohortKey.of(sample_cohort))]
    assert not windows.opened


def test_a_cohort_shown_lately_is_opened(
    view: Run, windows: Windows, link: ObjectLink, sample_cohort: Cohort
) -> None:
    windows.recent = sample_cohort
    assert view("--link", link.text)[0] == 0
    assert windows.opened == [
        (sample_cohort, {"link": link, "region": None, "screenshot": None, "allow_outside": False})
    ]


def test_a_window_of_another_version_is_asked(
    view: Run, windows: Windows, link: ObjectLink, sample_cohort: Cohort
) -> None:
    other = replace(link, cohort=replace(link.cohort, teams="000000"))
    windows.recent, windows.open = sample_cohort, [CohortKey.of(sample_cohort)]
    assert view("--link", other.text)[0] == 0
    assert [key for _, key in windows.sent] == [other.cohort, CohortKey.of(sample_cohort)]
    assert not windows.opened


def test_without_a_cohort_that_fits_the_folder_is_asked_for(
    view: Run, windows: Windows, link: ObjectLink
) -> None:
    assert view("--link", link.text)[0] == 0
    assert windows.asked == [link]
    code, _, error = view("--link", link.text, "--screenshot", "p.png")
    assert code == 1
    assert "name its folder: napari-panoptic view COHORT --link LINK" in error
    assert windows.asked == [link]


def test_a_picture_is_of_a_new_window(
    view: Run, windows: Windows, link: ObjectLink, nuclei_sample: Path, tmp_path: Path
) -> None:
    windows.open = [link.cohort]
    picture = tmp_path / "p.png"
    assert view(nuclei_sample, "--link", link.text, "--screenshot", picture)[0] == 0
    ((_, options),) = windows.opened
    assert options["screenshot"] == picture
    assert not windows.sent


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("http://example.org", "--link: expected a link that begins with 'panoptic:'"),
        ("panoptic:%2Fetc@5f3a91c2-77ab3e", "which is a path"),
        ("panoptic:one@5f3a91c2-77ab3e/A%1B%5B2J", "control characters"),
        ("panoptic:one@5f3a91c2-77ab3e/A\x1b[2J", r"found '\x1b'"),
        ("panoptic:" + "A" * 10**5, "up to 4000 characters, found 100009"),
    ],
)
def test_hostile_links_are_refused(view: Run, windows: Windows, text: str, says: str) -> None:
    code, out, error = view("--link", text)
    assert (code, out) == (2, "")
    assert says in error
    assert "\x1b" not in error
    assert len(error) < 1000
    assert windows == Windows()


def test_what_the_cohort_lacks_is_refused_before_a_window_opens(
    view: Run, windows: Windows, link: ObjectLink, nuclei_sample: Path, detection_sample: Path
) -> None:
    code, _, error = view(nuclei_sample, "--link", replace(link, region="Sample-A_9").text)
    assert code == 2
    assert "--link: Cannot open the link: there is no region 'Sample-A_9'" in error
    code, _, error = view(detection_sample, "--link", link.text)
    assert code == 2
    assert "--link: links lead to nuclei, and this cohort is about detections" in error
    assert windows == Windows()


@pytest.mark.parametrize(
    "more", [("--region", "A"), ("--reference", "a.tif", "--prediction", "b.tif")]
)
def test_what_the_link_states_is_not_given(
    view: Run, windows: Windows, link: ObjectLink, more: tuple[str, ...]
) -> None:
    code, _, error = view("--link", link.text, *more)
    assert code == 2
    assert f"{more[0]} cannot be given with --link" in error
    assert windows == Windows()


def test_a_link_needs_a_display(
    view: Run, windows: Windows, link: ObjectLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    code, _, error = view("--link", link.text)
    assert code == 1
    assert "there is no display" in error
    assert windows == Windows()


def test_an_open_window_is_found_without_napari() -> None:
    code = (
        "import sys, napari_panoptic.cli.view\n"
        "import napari_panoptic.viewer.kit.link_socket\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    loaded = set(done.stdout.split())
    assert "qtpy.QtNetwork" in loaded
    assert not {"napari", "pandas", "qtpy.QtWidgets"} & loaded


@pytest.mark.parametrize("platform", ["offscreen", "minimal"])
def test_a_platform_without_opengl_is_named(
    nuclei_sample: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, platform: str
) -> None:
    """It ended in a traceback of vispy."""
    monkeypatch.setenv("QT_QPA_PLATFORM", platform)
    assert main(["view", str(nuclei_sample), "--screenshot", "a.png"]) == 1
    assert f"found QT_QPA_PLATFORM={platform}" in capsys.readouterr().err
