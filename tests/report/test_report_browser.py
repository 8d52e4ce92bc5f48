"""The report in a real browser: shown whole, printed on A4, and deaf to what names say."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.report import page as report_page
from napari_panoptic.report.nuclei.page import write_report
from tests.support.browser import CHROMIUM, Page, browser_page
from tests.support.paths import SHARED_CASES, needs_shared_cases
from tests.support.reports import HOSTILE_TEAMS, hostile, report_on
from tests.support.small_cohort import write_cohort

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium here (Debian: apt-get install chromium)"
)
WIDTH_PX = 1280
A4_POINTS = (595, 842)
MOST_BYTES = 15 * 10**6


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser_page(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report in which everything has a name that tries to break out of it."""
    folder = tmp_path_factory.mktemp("report")
    cohort = hostile(open_cohort(write_cohort(folder / "cohort")))
    written = write_report(report_on(cohort), folder / "report.html")
    assert written is not None
    return written


def assert_shown_whole(page: Page) -> None:
    assert page.errors == []
    assert len(page.requested) == 1  # the page itself
    images = "[...document.images].map(image => image.naturalWidth)"
    widths = page.value(images)
    assert len(widths) > 10
    assert min(widths) > 0
    assert page.value("document.documentElement.scrollWidth") <= WIDTH_PX
    drawings = page.value(
        "[...document.querySelectorAll('figure.plot svg')].map(d => d.getBoundingClientRect())"
        ".map(box => [box.left, box.right, box.height])"
    )
    assert len(drawings) == 19
    for left, right, height in drawings:
        assert 0 <= left < right <= WIDTH_PX
        assert height > 50


def page_sizes(pdf: bytes) -> list[tuple[int, int]]:
    """Give width and height of each page in points."""
    parts = [pdf]
    for packed in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        unpacker = zlib.decompressobj()
        try:
            parts.append(unpacker.decompress(packed))
        except zlib.error:
            continue  # a picture or a font
    boxes = re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)\s*\]", b"\n".join(parts))
    return [(round(float(width)), round(float(height))) for width, height in boxes]


def test_hostile_names_are_shown_and_do_nothing(browser: Page, report: Path) -> None:
    browser.open(report)

    assert_shown_whole(browser)
    assert browser.value("typeof hacked") == "undefined"
    assert browser.value("document.querySelectorAll('script').length") == 1
    assert browser.value("document.querySelectorAll('h1').length") == 1
    assert HOSTILE_TEAMS[0] in browser.value("document.querySelector('#teams').innerText")
    direction = "getComputedStyle(document.querySelector('#teams tbody bdi')).unicodeBidi"
    assert browser.value(direction) == "isolate"


def test_tables_are_sorted_by_clicks_and_keys(browser: Page, report: Path) -> None:
    browser.open(report)
    column = (
        "[...document.querySelectorAll('#patients tbody tr')].map(r => r.cells[2].dataset.value)"
    )
    title = "document.querySelectorAll('#patients thead [role=button]')[2]"

    def values() -> list[float]:
        return [float(value) for value in browser.value(column) if value]

    browser.value(f"{title}.click()")
    assert values() == sorted(values())
    browser.value(f"{title}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Enter'}}))")
    assert values() == sorted(values(), reverse=True)
    assert browser.value(f"{title}.closest('th').getAttribute('aria-sort')") == "descending"


def test_undefined_figures_stay_last_when_sorted(browser: Page, tmp_path: Path) -> None:
    script = Path(report_page.__file__).parent / "templates" / "report.js"
    rows = "".join(f"<tr><td data-value='{v}'>{v}</td></tr>" for v in ("", "0.5", "-1", "10"))
    page = tmp_path / "table.html"
    page.write_text(
        "<table class=sortable><thead><tr><th>figure</th></tr></thead>"
        f"<tbody>{rows}</tbody></table><script>{script.read_text(encoding='utf-8')}</script>"
    )
    browser.open(page)
    shown = "[...document.querySelectorAll('td')].map(cell => cell.textContent)"
    for expected in (["-1", "0.5", "10", ""], ["10", "0.5", "-1", ""]):
        browser.value("document.querySelector('[role=button]').click()")
        assert browser.value(shown) == expected


def test_the_page_needs_no_script(browser: Page, report: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(report)
        assert_shown_whole(browser)
        assert browser.value("document.querySelectorAll('[role=button]').length") == 0
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


def test_it_is_printed_on_a4_with_nothing_cut_off(browser: Page, report: Path) -> None:
    browser.open(report)
    sizes = page_sizes(browser.pdf())
    assert len(sizes) > 5
    assert set(sizes) == {A4_POINTS}
    # As wide as what a page of A4 has between its margins.
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=703,
        height=1000,
        deviceScaleFactor=1,
        mobile=False,
    )
    try:
        too_wide = browser.value(
            "[...document.querySelectorAll('table, svg, img')]"
            ".filter(e => e.getBoundingClientRect().right > 704)"
            ".map(e => e.closest('section').id + ': ' + e.textContent.slice(0, 80))"
        )
        assert too_wide == []
        # What is folded on the screen is on paper.
        assert browser.value("document.querySelector('#classes details table').offsetHeight") > 100
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


@pytest.mark.long
@needs_shared_cases
def test_thirty_regions_and_four_teams(browser: Page, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    assert main(["report", str(SHARED_CASES / "monusac"), "-o", str(target)]) == 0
    assert target.stat().st_size < MOST_BYTES
    browser.open(target)
    assert_shown_whole(browser)
    sizes = page_sizes(browser.pdf())
    assert set(sizes) == {A4_POINTS}
    assert len(sizes) < 60
