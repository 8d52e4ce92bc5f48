"""What the desk remembers, in napari's own settings and without them."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from napari._app_model import get_app_model
from qtpy.QtCore import Qt

from napari_panoptic.display import glossary
from napari_panoptic.display.failure_sections import GroupBy, sections
from napari_panoptic.display.listed import Others
from napari_panoptic.display.object_rows import WorstFirst
from napari_panoptic.display.styles import ColourBy, Display, Look
from napari_panoptic.explain.failure_groups import GroupKind
from napari_panoptic.values.settings import AmbiguousPolicy
from napari_panoptic.values.vocabulary import CAUSE_MEANINGS, Cause, Status, Verdict
from napari_panoptic.viewer.desk.nuclei import PARTS
from napari_panoptic.viewer.kit import keys
from napari_panoptic.viewer.kit.keys import DESK_KEYS, Shortcut, key_sections, key_text
from napari_panoptic.viewer.panels.failures.crops import Crops
from napari_panoptic.viewer.panels.failures.view import FailureView
from napari_panoptic.viewer.panels.part import PanelPart
from napari_panoptic.viewer.state.preferences import Preferences, Queue
from tests.support.many_failures import many_failures

ROUND_TRIP = """
import sys
from pathlib import Path
from napari_panoptic.display.listed import Others
from napari_panoptic.display.object_rows import WorstFirst
from napari_panoptic.viewer.state.preferences import PREFERENCES
from napari_panoptic.viewer.state.preferences import Preferences
from napari_panoptic.display.styles import ColourBy, Display, Look
here = Path(sys.argv[1])
if sys.argv[2] == "write":
    PREFERENCES.look = Look(ColourBy.CLASS, Display.FILL)
    PREFERENCES.reviewer = "Dr. Ö"
    PREFERENCES.order = WorstFirst.AREA
    PREFERENCES.others = Others.DIMMED
    PREFERENCES.hidden_columns = {"cause", "area_px"}
    PREFERENCES.set_unfolded("metrics", True)
    PREFERENCES.set_unfolded("settings", False)
    PREFERENCES.goes_on = False
    PREFERENCES.follow = False
    PREFERENCES.keep_drafts(here, [["Dr. Ö", "region", "team", "reference", 1, "", "pale"]])
    PREFERENCES.last_cohort = here
    PREFERENCES.choose_review_file(here, here / "mine.sqlite")
else:
    assert PREFERENCES.look == Look(ColourBy.CLASS, Display.FILL), PREFERENCES.look
    assert PREFERENCES.reviewer == "Dr. Ö"
    assert PREFERENCES.order is WorstFirst.AREA
    assert PREFERENCES.others is Others.DIMMED
    assert PREFERENCES.hidden_columns == {"cause", "area_px"}
    assert PREFERENCES.is_unfolded("metrics")
    assert not PREFERENCES.is_unfolded("settings")
    assert PREFERENCES.goes_on is False
    assert PREFERENCES.follow is False
    assert PREFERENCES.drafts(here) == [["Dr. Ö", "region", "team", "reference", 1, "", "pale"]]
    assert PREFERENCES.last_cohort == here
    assert PREFERENCES.review_file(here) == here / "mine.sqlite"
"""


@pytest.mark.long
def test_the_next_day_everything_is_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setenv("NAPARI_CONFIG", str(tmp_path / "settings.yaml"))
    for action in ("write", "read"):
        done = subprocess.run(
            [sys.executable, "-c", ROUND_TRIP, str(tmp_path), action],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_napari_lets_people_choose_what_the_desk_knows():
    manifest = yaml.safe_load((Path(__file__).parents[3] / "napari.yaml").read_text("utf-8"))
    desk = manifest["contributions"]["configurations"]["desk"]["properties"]
    # Then those of earlier versions, which napari would refuse to read.
    assert desk["order"]["enum"] == [*map(str, WorstFirst), "class", "largest HD"]
    assert desk["queue"]["enum"] == [str(queue) for queue in reversed(Queue)]
    assert desk["others"]["enum"] == [str(others) for others in Others]
    assert desk["colour_by"]["enum"] == [str(choice) for choice in ColourBy]
    assert set(desk["display"]["enum"]) == {str(choice) for choice in Display} - {"hidden"}


def test_hidden_objects_are_not_remembered(preferences):
    preferences.look = Look(ColourBy.CLASS, Display.HIDDEN)
    assert preferences.look == Look(ColourBy.CLASS, Display.OUTLINE)


def test_the_opacity_of_filled_objects_is_remembered(preferences):
    preferences.look = Look(display=Display.FILL, fill_opacity=0.25)
    assert preferences.look == Look(display=Display.FILL, fill_opacity=0.25)
    assert Preferences({("desk", "fill_opacity"): "dense"}).look == Look()


def test_values_that_make_no_sense_count_as_unset():
    preferences = Preferences(
        {
            ("desk", "display"): "sideways",
            ("desk", "fill_opacity"): 7,
            ("desk", "order"): "by weight",
            ("desk", "others"): "some",
            ("desk", "hidden_columns"): "iou,, colour ,id",
            ("review", "files"): "{not json",
            ("desk", "last_cohort"): "/not/there",
        }
    )
    assert preferences.look == Look()
    assert preferences.order is WorstFirst.IMPACT
    assert preferences.others is Others.SHOWN
    assert preferences.hidden_columns == {"iou", "id"}
    assert preferences.review_file(Path()) is None
    assert preferences.last_cohort is None


@pytest.mark.parametrize(
    ("key", "text"), [("n", "N"), ("Shift-n", "Shift+N"), ("Alt-1", "Alt+1"), ("?", "?")]
)
def test_keys_are_written_for_people(key, text, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert key_text(key) == text


def test_no_key_is_listed_twice_for_one_place():
    own = (Shortcut("Alt-1", "something"),)
    sections = key_sections([("Review", own), ("Empty", ())])
    for _, listed in sections:
        assert len({shortcut.key for shortcut in listed}) == len(listed)
    titles = [title for title, _ in sections]
    assert len(titles) == len(set(titles))
    assert titles[:2] == ["Desk", "Review"]
    assert {shortcut.key for shortcut in DESK_KEYS} <= {s.key for s in sections[0][1]}
    assert "Empty" not in titles


def keys_in_code():
    """Collect the keys that widgets look for, by module."""
    spelled = {"Return": "Enter", "Copy": "Ctrl-c"}
    found = {}
    package = Path(keys.__file__).parents[1]
    for path in package.rglob("*.py"):
        nodes = [
            n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Attribute)
        ]
        names = {n.attr.removeprefix("Key_") for n in nodes if n.attr.startswith("Key_")}
        names |= {
            n.attr
            for n in nodes
            if isinstance(n.value, ast.Attribute) and n.value.attr == "StandardKey"
        }
        if names:
            found[path.relative_to(package).with_suffix("").as_posix()] = {
                spelled.get(name, name) for name in names
            }
    return found


@pytest.mark.long
def test_every_key_that_widgets_take_is_listed():
    found = keys_in_code()
    sections = {
        "panels/failures/view": (keys.GALLERY_KEYS,),
        "kit/array_table": (keys.TABLE_KEYS,),
        "kit/name_table": (keys.FILTER_KEYS, keys.SLICE_KEYS),
        "kit/figures": (keys.FIGURE_KEYS,),
        "kit/inputs": (keys.SLIDER_KEYS,),
    }
    # "1" with Alt: the keys of the verdicts
    assert found.pop("panels/review/inputs") <= {"1", "Escape", "Return", "Enter"}
    assert found.pop("panels/review/plan/panel") == {"Enter"}
    assert {"Escape", "Enter"} <= {shortcut.key for shortcut in keys.FIELD_KEYS}
    # Of menus, as in every menu, so that nobody looks for them in a list.
    assert found.pop("kit/menus") == {"Space", "Enter"}
    # Also with Ctrl, as in the panel of the objects.
    assert found.pop("panels/objects/panel") == {"Ctrl-c"}
    sorting = {f"Ctrl-{name}" for name in ("Left", "Right", "Up", "Down")}
    assert sorting == {shortcut.key for shortcut in keys.SORT_KEYS}
    found["kit/array_table"] -= {"Left", "Right"}
    found["kit/figures"] = found["kit/array_table"] & {"Space", "Enter"}  # as tables take them
    assert set(found) == set(sections)
    for module, names in found.items():
        assert names <= {key.key for section in sections[module] for key in section}, module
    listed = [section for _, section in key_sections()]
    assert all(section in listed for own in sections.values() for section in own)


@pytest.mark.parametrize("shortcut", keys.GALLERY_KEYS, ids=lambda shortcut: shortcut.key)
def test_the_gallery_takes_the_keys_that_are_listed(qtbot, shortcut):
    view = FailureView(Crops())
    qtbot.addWidget(view)
    view.resize(400, 400)
    view.show()
    failures = many_failures(40)
    found = sections(failures, np.arange(40), GroupBy.CAUSE)
    view.refill(lambda: view.items.show(failures, found, GroupBy.CAUSE))
    view.select(20)
    told = []
    view.chosen.connect(told.append)
    view.wanted.connect(told.append)
    qtbot.keyClick(view, getattr(Qt.Key, f"Key_{shortcut.key}"))
    assert len(told) == 1
    assert (told[0] == 20) is (shortcut.key in ("Enter", "Space"))


class TestGlossary:
    def test_everything_is_defined_in_one_sentence(self):
        assert set(glossary.STATUS_MEANINGS) == set(Status)
        assert set(CAUSE_MEANINGS) == set(Cause)
        assert set(glossary.VERDICT_MEANINGS) == set(glossary.VERDICT_WORDS) == set(Verdict)
        assert set(glossary.GROUP_MEANINGS) == set(GroupKind)
        assert set(AmbiguousPolicy) <= set(glossary.SETTING_MEANINGS)
        assert set(glossary.UNDEFINED_BECAUSE) == set(glossary.FIGURE_MEANINGS)
        for meanings in (
            glossary.STATUS_MEANINGS,
            CAUSE_MEANINGS,
            glossary.VERDICT_MEANINGS,
            glossary.FIGURE_MEANINGS,
            glossary.OBJECT_MEANINGS,
            glossary.GROUP_MEANINGS,
            glossary.SETTING_MEANINGS,
        ):
            assert all(text.endswith(".") for text in meanings.values() if text)

    def test_the_page_on_figures_knows_every_word(self):
        page = (Path(__file__).parents[3] / "docs" / "reference" / "figures.md").read_text(
            encoding="utf-8"
        )
        words = [str(status) for status in Status]
        words += [str(cause) for cause in Cause if cause is not Cause.NONE]
        words += list(glossary.VERDICT_WORDS.values())
        missing = [word for word in words if word not in page]
        missing += [
            name
            for name in glossary.FIGURE_MEANINGS
            if name not in page and f"`_{name.removeprefix('detection_')}`" not in page
        ]
        assert missing == []


def test_no_key_is_bound_twice(qtbot):
    bound = [shortcut.key.lower() for shortcut in DESK_KEYS]
    for part_type in PARTS:
        part = PanelPart(part_type)
        qtbot.addWidget(part.widget)
        bound += [part.key.lower()] if part.key is not None else []
        bound += [shortcut.key.lower() for shortcut, _ in part.shortcuts()]
    assert sorted(bound) == sorted(set(bound))
    assert not {"m", "x", "b", "1", "2", "3", "4", "5", "6", "7"} & set(bound)  # napari's own


@pytest.mark.usefixtures("window")
def test_no_panel_has_the_key_of_a_menu_of_napari():
    bindings = get_app_model().keybindings  # filled with the first window
    # The menu Debug, which has Alt+T, is only there where napari is traced.
    taken = {str(rule.keybinding).lower() for rule in bindings if ".debug." not in rule.command_id}
    assert "alt+s" in taken
    keys = [shortcut.key for shortcut in DESK_KEYS]
    for part_type in PARTS:
        keys += [part_type.key or ""]
        keys += [shortcut.key for shortcut, _ in part_type.shortcuts()]
    assert not {key.lower().replace("-", "+") for key in keys if key} & taken


def test_a_last_cohort_that_no_folder_can_be_called_counts_as_unset():
    preferences = Preferences({("desk", "last_cohort"): "/" + "9" * 5000})
    assert preferences.last_cohort is None
