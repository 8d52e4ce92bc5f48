"""A review in real browsers: from the page to the file of verdicts to the same rows."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from napari_panoptic.cli.main import main
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.review.package.answers import Answers, read_answers
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.values.vocabulary import Verdict
from tests.report.package.test_package_page import corners_of
from tests.support.browser import CHROMIUM, Page, browser_page
from tests.support.firefox import FIREFOX, FirefoxPage, firefox_page
from tests.support.reports import hostile
from tests.support.review_packages import (
    contents_of,
    data_of,
    saved,
    write_file,
    write_small_package,
)
from tests.support.small_cohort import REGIONS
from tests.support.waiting import wait_until

ITEMS = 6
VERDICTS = ("annotation-right", "prediction-right", "both-wrong", "cannot-tell")
TABLET = ((1280, 800), (1024, 768), (820, 1180), (390, 844))
NO_CHROMIUM = "there is no Chromium here (Debian: apt-get install chromium)"
NO_FIREFOX = "there is no Firefox here (Debian: apt-get install firefox-esr)"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    with browser_page(tmp_path_factory.mktemp("chromium")) as page:
        yield page


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FirefoxPage]:
    if FIREFOX is None:
        pytest.skip(NO_FIREFOX)
    with firefox_page(tmp_path_factory.mktemp("firefox")) as page:
        yield page


@pytest.fixture(params=["chromium", pytest.param("firefox", marks=pytest.mark.long)])
def browser(request: pytest.FixtureRequest) -> Page | FirefoxPage:
    found: Page | FirefoxPage = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def package(small_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("package") / "review.html"
    command = ["package", str(small_folder), "--failures", str(ITEMS), "-o", str(page)]
    assert main(command) == 0
    return page


@pytest.fixture
def planned(small_folder: Path, tmp_path: Path) -> Path:
    """Write a package of a plan of an object and two tiles, of which one is judged."""
    name = REGIONS[0].name
    lines = [
        f"1,alpha,P,{name},background,,10,10,b,0.5",
        f"2,alpha,P,{name},reference,3,1,1,FN,0.5",
        f"3,beta,P,{name},background,,10,10,b,0.5",
    ]
    plan = tmp_path / "plan.csv"
    header = "item,team,patient,region,side,id,y_px,x_px,stratum,probability"
    plan.write_text("\n".join([header, *lines]), encoding="utf-8")
    page = tmp_path / "plan.html"
    assert (
        main(["package", str(small_folder), "--plan", str(plan), "--blind", "-o", str(page)]) == 0
    )
    return page


@pytest.fixture
def opened(browser: Page | FirefoxPage) -> Callable[[Path], None]:
    """Give a function that opens a page of which the browser knows nothing yet."""
    return partial(open_without_progress, browser)


# A busy Chromium sometimes gives a document a store of its own, which starts empty and is lost
# with the document. The mark tells such a document from one that has what was stored before.
MARK = "localStorage.getItem('mark')"
marks = count()


def open_without_progress(page: Page | FirefoxPage, path: Path) -> None:
    mark = str(next(marks))

    def begin_anew() -> None:
        page.value(f"localStorage.clear(), localStorage.setItem('mark', '{mark}')")
        page.open(path)

    page.open(path)
    wait_until(lambda: page.value(MARK) == mark, "the browser stores nothing", meanwhile=begin_anew)


def open_with_progress(page: Page | FirefoxPage, path: Path) -> None:
    mark = page.value(MARK)
    page.open(path)
    wait_until(
        lambda: page.value(MARK) == mark,
        "the browser has lost what it stored",
        meanwhile=lambda: page.open(path),
    )


def press_keys(page: Page | FirefoxPage, *keys: str) -> None:
    for key in keys:
        page.press(key)


def text_of(page: Page | FirefoxPage, id_: str) -> str:
    return str(page.value(f"document.getElementById('{id_}').textContent"))


def downloaded(folder: Path) -> Path:
    def whole() -> list[Path]:
        # A browser may show the file before it is whole.
        found = [p for p in folder.glob("*.json") if p.read_bytes().endswith(b"}")]
        return [] if list(folder.glob("*.part")) else found

    wait_until(whole, "nothing was saved", pause_s=0.05)
    return whole()[0]


def saved_by_keys(page: Page | FirefoxPage, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    page.save_downloads_in(folder)
    press_keys(page, "s")
    assert "Send this file back" in text_of(page, "notice")
    return downloaded(folder)


def rows(path: Path, reviewer: str = "Ada") -> list[dict[str, Any]]:
    with ReviewStore(path, reviewer=reviewer, create=False) as store:
        return [record.values() for record in store.verdicts()]


def test_from_the_keys_to_the_review_file(
    browser: Page | FirefoxPage,
    opened: Callable[[Path], None],
    package: Path,
    small_folder: Path,
    tmp_path: Path,
) -> None:
    opened(package)
    press_keys(browser, "Tab")  # to the first field of the page
    browser.write("Ada")
    press_keys(browser, "Escape", "1", "2", "n")
    browser.write("looks like 1 of 3")  # keys of verdicts are text here
    browser.press("3", alt=True)
    press_keys(
        browser, "Escape", "4", "ArrowLeft", "ArrowLeft", "ArrowLeft", "u", "o", "1", "2", "3"
    )
    assert text_of(browser, "done") == "6 of 6 answered, 6 not saved"
    path = saved_by_keys(browser, tmp_path / "saved")
    assert text_of(browser, "done") == "6 of 6 answered"

    review = tmp_path / "review.sqlite"
    command = ["import-verdicts", str(path), str(small_folder), "--review", str(review)]
    assert main(command) == 0
    items = contents_of(package).items
    given = json.loads(path.read_text("utf-8"))["verdicts"]
    by_item = {item.item: item for item in items}
    found = {(r["team"], r["region"], r["side"], r["object_id"]): r for r in rows(review)}
    assert len(found) == len(given) == ITEMS
    for line in given:
        subject = by_item[line["item"]].subject
        assert subject is not None
        row = found[subject.team, subject.region, subject.side, subject.object_id]
        assert (row["verdict"], row["note"]) == (line["verdict"], line["note"])
        assert row["centroid_y_px"] == subject.fingerprint.centroid_y_px
        assert row["centroid_x_px"] == subject.fingerprint.centroid_x_px
        assert row["area_px"] == subject.fingerprint.area_px
    assert main(command) == 1  # a second time


def test_tiles_are_counted_by_keys(
    browser: Page | FirefoxPage,
    opened: Callable[[Path], None],
    planned: Path,
    small_folder: Path,
    tmp_path: Path,
) -> None:
    opened(planned)
    press_keys(browser, "Tab")
    browser.write("Ada")
    press_keys(browser, "Escape", "1", "2", "Enter")
    assert "Who is right" in text_of(browser, "question")
    press_keys(browser, "2", "c")
    path = saved_by_keys(browser, tmp_path / "saved")
    table = tmp_path / "verdicts.csv"
    command = ["import-verdicts", str(path), str(small_folder), "--verdicts", str(table)]
    assert main([*command, "--review", str(tmp_path / "review.sqlite")]) == 0
    assert table.read_text("utf-8").splitlines() == [
        "item,verdict,count",
        "1,,12",
        "2,prediction-right,",
        "3,cannot-tell,",
    ]


def test_progress_outlives_the_page(
    browser: Page | FirefoxPage, opened: Callable[[Path], None], package: Path
) -> None:
    opened(package)
    press_keys(browser, "2", "3", "n")
    browser.write("seen")
    open_with_progress(browser, package)
    assert "Your answers are still here: 2 of 6" in text_of(browser, "notice")
    assert text_of(browser, "place") == "3 of 6"
    assert browser.value("document.getElementById('note').value") == "seen"


# --- what needs one browser only -------------------------------------------------------------

KEPT_BLOBS = (
    "HTMLAnchorElement.prototype.click = () => 0,"
    "URL.createObjectURL = (blob) => { window.kept = blob; return ''; }, 0"
)


def file_of(page: Page, path: Path, reviewer: str = "Ada") -> Path:
    """Save by the button, without the browser's own way to save."""
    page.value(KEPT_BLOBS)
    page.value(f"document.getElementById('reviewer').value = {json.dumps(reviewer)}")
    page.value("document.getElementById('save').click()")
    text = page.call(
        "Runtime.evaluate", expression="kept.text()", awaitPromise=True, returnByValue=True
    )["result"]["value"]
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def page(chromium: Page, package: Path) -> Page:
    open_without_progress(chromium, package)
    return chromium


def test_the_digest_is_right_for_texts_of_any_length(page: Page, tmp_path: Path) -> None:
    press_keys(page, "1")
    names = ["A" * length for length in range(1, 66)]
    for name in [*names, 'é𝄞\\"\t', "\u2028</script>", "\x7f"]:
        answers = read_answers(file_of(page, tmp_path / "verdicts.json", name))
        assert answers.reviewer == name.strip()


def test_half_a_character_is_replaced(page: Page, tmp_path: Path) -> None:
    press_keys(page, "1")
    answers: Answers = read_answers(file_of(page, tmp_path / "verdicts.json", "A\udc00"))
    assert answers.reviewer == "A\ufffd"


def test_nothing_is_fetched_and_no_other_script_runs(page: Page) -> None:
    assert page.errors == []
    assert len(page.requested) == 1  # the page itself
    page.value(
        "window.blocked = [], document.addEventListener('securitypolicyviolation', "
        "(event) => blocked.push(event.effectiveDirective)), 0"
    )
    attempts = [
        "new Image().src = 'http://127.0.0.1:9/a.png'",
        "fetch('http://127.0.0.1:9/').catch(() => 0), 0",
        "document.body.append(Object.assign(document.createElement('script'),"
        " {textContent: 'window.hacked = 1'})), 0",
        "document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">'), 0",
        "document.body.append(Object.assign(document.createElement('iframe'),"
        " {src: 'http://127.0.0.1:9/'})), 0",
    ]
    for attempt in attempts:
        page.value(attempt)
    expected = {"img-src", "connect-src", "script-src-elem", "style-src-attr", "frame-src"}
    # The browser reports some of them later.
    wait_until(lambda: expected <= set(page.value("blocked")))
    assert page.value("typeof hacked") == "undefined"


def test_hostile_names_are_shown_and_do_nothing(
    chromium: Page, small_folder: Path, tmp_path: Path
) -> None:
    cohort = hostile(open_cohort(small_folder))
    path = write_small_package(
        tmp_path / "hostile.html", cohort, 30, reviewer="</script><script>hacked=1</script>"
    )
    chromium.open(path)
    press_keys(chromium, "1", "n")
    chromium.write("<img src=x onerror=hacked=1>")
    press_keys(chromium, "Escape", *("ArrowRight",) * 10)
    assert chromium.errors == []
    assert chromium.value("typeof hacked") == "undefined"
    assert chromium.value("document.querySelectorAll('script').length") == 2
    assert chromium.value("document.querySelectorAll('h1').length") == 1
    assert chromium.value("document.images.length") == 0
    facts = chromium.value("document.querySelector('figcaption').textContent")
    assert 'Region: r" onload="hacked=1" <b>\\n' in facts
    answers = read_answers(file_of(chromium, tmp_path / "verdicts.json"))
    assert answers.contents == contents_of(path)


def test_without_storage_it_warns_and_works(chromium: Page, package: Path, tmp_path: Path) -> None:
    script = (
        "Object.defineProperty(window, 'localStorage', "
        "{get() { throw new DOMException('none', 'SecurityError'); }})"
    )
    added = chromium.call("Page.addScriptToEvaluateOnNewDocument", source=script)
    try:
        chromium.open(package)
        assert "stores no progress" in text_of(chromium, "notice")
        press_keys(chromium, "3", "4")
        answers = read_answers(file_of(chromium, tmp_path / "verdicts.json"))
        assert [str(a.verdict) for a in answers.answers] == ["both-wrong", "cannot-tell"]
    finally:
        chromium.call("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])


def test_damaged_progress_is_left_out(page: Page, package: Path) -> None:
    items = contents_of(package).items
    key = f"napari-panoptic {data_of(package)['package']}"
    own = {"verdict": "both-wrong", "count": None, "note": "", "given_at": "2026-01-01T00:00:00Z"}
    for content in ("{", "null", "[]", '{"answers": 3, "place": 99}'):
        page.value(f"localStorage.setItem({json.dumps(key)}, {json.dumps(content)})")
        open_with_progress(page, package)
        assert page.errors == []
        assert text_of(page, "done") == "0 of 6 answered"
    state = {
        "answers": [
            [items[0].item, own],
            [items[1].item, own | {"verdict": "<b>"}],
            [items[2].item, own | {"count": -1}],
            ["99", own],
            None,
        ]
    }
    page.value(f"localStorage.setItem({json.dumps(key)}, {json.dumps(json.dumps(state))})")
    open_with_progress(page, package)
    assert text_of(page, "done").startswith("1 of 6 answered")


def load(page: Page, path: Path) -> str:
    """Choose a file of saved verdicts; give what the page says."""
    page.value("document.getElementById('notice').textContent = ''")
    found = page.call("Runtime.evaluate", expression="document.getElementById('file')")
    page.call("DOM.setFileInputFiles", files=[str(path)], objectId=found["result"]["objectId"])
    wait_until(lambda: text_of(page, "notice"))
    return text_of(page, "notice")


def test_saved_verdicts_are_continued(page: Page, package: Path, tmp_path: Path) -> None:
    contents = contents_of(package)
    items = [item.item for item in contents.items]
    file = saved(contents, {items[0]: Verdict.BOTH_WRONG, items[1]: Verdict.CANNOT_TELL})
    press_keys(page, "1")  # newer than what the file says of the first item
    assert "Loaded 1 verdicts" in load(page, write_file(tmp_path / "saved.json", file))
    answers = read_answers(file_of(page, tmp_path / "again.json"))
    found = [(a.item.item, str(a.verdict)) for a in answers.answers]
    assert found == [(items[0], "annotation-right"), (items[1], "cannot-tell")]
    altered = {**file, "reviewer": "Bo"}
    assert "altered or damaged" in load(page, write_file(tmp_path / "altered.json", altered))
    assert "was not loaded" in load(page, write_file(tmp_path / "other.json", {"a": 1}))


def test_a_second_tab_loses_nothing(page: Page, package: Path, tmp_path: Path) -> None:
    press_keys(page, "1")
    items = [item.item for item in contents_of(package).items]
    key = json.dumps(f"napari-panoptic {data_of(package)['package']}")
    other = {"verdict": "both-wrong", "count": None, "note": "", "given_at": "2026-01-01T00:00:00Z"}
    state = json.dumps(json.dumps({"answers": [[items[4], other]]}))
    page.value(f"localStorage.setItem({key}, {state})")
    press_keys(page, "2")
    answers = read_answers(file_of(page, tmp_path / "verdicts.json"))
    assert [a.item.item for a in answers.answers] == [items[0], items[1], items[4]]


def test_a_name_is_asked_for_before_saving(page: Page) -> None:
    press_keys(page, "1")
    page.value("document.getElementById('reviewer').value = ''")
    press_keys(page, "s")
    assert text_of(page, "notice") == "Enter your name, then save again."
    assert page.value("document.activeElement.id") == "reviewer"


def test_outlines_are_toggled_and_the_picture_is_zoomed(page: Page) -> None:
    hidden = (
        "['annotation', 'prediction'].map((side) => getComputedStyle("
        "document.querySelector(`figure g.${side}`)).display === 'none')"
    )
    box = "document.querySelector('figure svg').getAttribute('viewBox').split(' ').map(Number)"
    for keys, expected in {
        "a": [True, False],
        "p": [True, True],
        "h": [False, False],
        "hp": [True, False],
    }.items():
        press_keys(page, *keys)
        assert page.value(hidden) == expected
    width = page.value(box)[2]
    press_keys(page, "+")
    assert page.value(box)[2] < width
    press_keys(page, "f")
    assert page.value(box)[:2] == [0, 0]
    page.value("document.getElementById('in').click()")
    before = page.value(box)
    page.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight", modifiers=8)
    assert page.value(box)[0] > before[0]


KINDS = ("concerned", "beside")
PATHS = """[...document.querySelectorAll("figure path")].map((path) => ({
    side: path.parentElement.getAttribute("class"),
    kind: path.parentElement.parentElement.getAttribute("class"),
    isCasing: path.classList.contains("casing"),
    shorter: Number(path.dataset.shorter),
    width: parseFloat(getComputedStyle(path).strokeWidth),
    d: path.getAttribute("d"),
}))"""


def test_lines_are_as_wide_at_every_zoom_and_fit_their_objects(page: Page, package: Path) -> None:
    item = data_of(package)["items"][0]
    wanted = {"annotation": 2.5, "prediction": 1.5}
    wanted[item["side"]] += 1
    beside = {"annotation": 2.5, "prediction": 1.5}
    limited = 0
    for width, keys in ((1280, "f"), (390, ""), (390, "--"), (1280, "++++++++")):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        page.call("Emulation.setDeviceMetricsOverride", **size)
        press_keys(page, *keys)
        scale = page.value(
            "(({width}, box) => width / box[2])(document.querySelector('figure svg')"
            ".getBoundingClientRect(), document.querySelector('figure svg')"
            ".getAttribute('viewBox').split(' ').map(Number))"
        )
        found = page.value(PATHS)
        kinds = {(path["kind"], path["isCasing"]) for path in found}
        assert kinds == {(kind, is_casing) for kind in KINDS for is_casing in (False, True)}
        for path in found:
            expected = (beside if path["kind"] == "beside" else wanted)[path["side"]]
            most = path["shorter"] * scale / 4
            limited += most < expected
            width = min(expected, most)
            if path["isCasing"]:
                width += 2 * min(0.75, width / 2)
            assert path["width"] == pytest.approx(width, abs=0.02)
    page.call("Emulation.clearDeviceMetricsOverride")
    assert limited


def test_the_page_draws_the_lines_that_were_written(page: Page, package: Path) -> None:
    item = data_of(package)["items"][0]
    found = page.value(PATHS)
    for side, kinds in item["paths"].items():
        for kind, paths in kinds.items():
            for shorter, lines in paths:
                expected = [np.array(corners) for corners in corners_of(lines)]
                drawn = [
                    path["d"]
                    for path in found
                    if (path["side"], path["kind"], path["shorter"]) == (side, kind, shorter)
                ]
                assert len(drawn) == 2  # the line and its casing
                for path in drawn:
                    rings = path.split("z")[:-1]
                    assert len(rings) == len(expected)
                    for ring, corners in zip(rings, expected, strict=True):
                        numbers = np.array(re.findall(r"-?[\d.]+", ring), float).reshape(-1, 2)
                        assert np.array_equal(np.cumsum(numbers, axis=0), corners)


def test_two_fingers_zoom_and_one_moves(page: Page) -> None:
    box = "document.querySelector('figure svg').getAttribute('viewBox').split(' ').map(Number)"
    x, y, width = page.value(
        "(({x, y, width}) => [x, y, width])(document.querySelector('figure svg')"
        ".getBoundingClientRect())"
    )
    middle = (x + width / 2, y + width / 2)

    def touch(kind: str, *distances: float) -> None:
        points = [
            {"x": middle[0] + distance, "y": middle[1], "id": number}
            for number, distance in enumerate(distances)
        ]
        page.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    page.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    try:
        before = page.value(box)
        touch("touchStart", -40, 40)
        touch("touchMove", -80, 80)
        touch("touchEnd")
        after = page.value(box)
        assert after[2] == pytest.approx(before[2] / 2, rel=0.1)
        touch("touchStart", 0)
        touch("touchMove", 30)
        touch("touchEnd")
        moved = page.value(box)
        assert moved[2] == after[2]
        assert moved[0] - after[0] == pytest.approx(-30 * after[2] / width, rel=0.1)
    finally:
        page.call("Emulation.setTouchEmulationEnabled", enabled=False)


def test_a_pair_has_a_verdict_for_each_team(
    chromium: Page, small_folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "ab.html"
    command = ["package", str(small_folder), "--failures", "3", "--compare", "alpha,beta"]
    assert main([*command, "-o", str(path)]) == 0
    chromium.open(path)
    press_keys(chromium, "1", "2")  # A, then B
    assert text_of(chromium, "place") == "2 of 3"
    press_keys(chromium, "b", "3")  # B first
    assert "in A?" in text_of(chromium, "question")
    press_keys(chromium, "4")
    assert text_of(chromium, "place") == "3 of 3"
    answers = read_answers(file_of(chromium, tmp_path / "verdicts.json"))
    first, second, third, fourth = [str(answer.verdict) for answer in answers.answers]
    assert [first, second, third, fourth] == [VERDICTS[k] for k in (0, 1, 3, 2)]
    items = [answer.item for answer in answers.answers]
    assert {items[0].team, items[1].team} == {"alpha", "beta"}
    assert items[0].target == items[1].target


@pytest.mark.parametrize("size", TABLET, ids=lambda size: f"{size[0]}x{size[1]}")
def test_it_fits_and_can_be_touched(chromium: Page, package: Path, size: tuple[int, int]) -> None:
    chromium.open(package, width=size[0], height=size[1])
    assert chromium.value("document.documentElement.scrollWidth") <= size[0]
    targets = chromium.value(
        "[...document.querySelectorAll('button, input, textarea')]"
        ".map((each) => each.getBoundingClientRect())"
        ".filter(({width}) => width).map(({left, right, width, height}) => "
        "[left, right, Math.min(width, height)])"
    )
    assert len(targets) > 14
    for left, right, smallest in targets:
        assert 0 <= left < right <= size[0]
        assert smallest >= 44
    overrun = chromium.value(
        "[...document.querySelectorAll('button')].filter((each) => {"
        " const words = document.createRange(); words.selectNodeContents(each);"
        " const [inner, outer] = [words, each].map((one) => one.getBoundingClientRect());"
        " return inner.width && inner.right > outer.right - 8;"
        "}).map((each) => each.textContent)"
    )
    assert overrun == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_readable_in_both_themes(chromium: Page, package: Path, theme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": theme}]
    chromium.call("Emulation.setEmulatedMedia", features=features)
    try:
        chromium.open(package)
        colours = chromium.value(
            "['body', '#save', '#verdicts button', '#verdicts small', '#place', 'figcaption']"
            ".map((each) => document.querySelector(each)).map((each) => {"
            " let back = each; while (getComputedStyle(back).backgroundColor === "
            "'rgba(0, 0, 0, 0)') back = back.parentElement;"
            " return [each, back].map((one, k) => getComputedStyle(one)"
            "[k ? 'backgroundColor' : 'color'].match(/\\d+/g).map(Number)); })"
        )
        for text, back in colours:
            light, dark = sorted(map(luminance, (text, back)), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5  # WCAG 2, level AA
    finally:
        chromium.call("Emulation.setEmulatedMedia", features=[])


def luminance(colour: list[int]) -> float:
    parts = [value / 255 for value in colour[:3]]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return float(sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True)))


def test_a_copy_elsewhere_keeps_its_progress_by_its_id(page: Page, package: Path) -> None:
    press_keys(page, "1")
    copy = shutil.copy(package, package.with_name("copy.html"))
    page.open(Path(copy))
    assert text_of(page, "done").startswith("1 of 6 answered")
