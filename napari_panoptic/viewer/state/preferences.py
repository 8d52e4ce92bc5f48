"""The desk's memory from one day to the next: napari's settings for this plugin.

People can see and change them in napari's preferences. Where napari does not
know the plugin (it is not installed, only imported), they last as long as the
window.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, TypeVar

from napari.settings import get_plugin_settings

from napari_panoptic.common.choices import MenuChoice
from napari_panoptic.display.listed import Others
from napari_panoptic.display.object_rows import COLUMNS, ObjectFilter, WorstFirst
from napari_panoptic.display.styles import (
    FILL_OPACITY,
    PREDICTION_LINE_PX,
    REFERENCE_LINE_PX,
    ColourBy,
    Display,
    Look,
)
from napari_panoptic.review.tags import joined_tags, split_tags
from napari_panoptic.values.vocabulary import Side


class ViewMode(StrEnum):
    """Which teams the canvas shows."""

    ONE = "One team"
    GRID = "Side by side"
    CONSENSUS = "Consensus"


class VersionScope(StrEnum):
    """Where two versions are compared."""

    REGION = "this region"
    COHORT = "whole cohort"


@dataclass(frozen=True)
class VersionChoice:
    """Two teams that are compared as an old and a new version, and where.

    A name that is empty, or of no team of the cohort, stands for a team of the cohort.
    """

    old: str = ""
    new: str = ""
    scope: VersionScope = VersionScope.REGION


class Tool(StrEnum):
    """What the mouse does on the active layer of points, as napari calls it."""

    LOOK = "pan_zoom"  # moves the image; a click selects
    ADD = "add"
    MOVE = "select"  # moves points, and marks those that Delete removes


@dataclass(frozen=True)
class ToolInHand:
    """A tool, and the side whose points it works on."""

    side: Side = Side.PREDICTION
    tool: Tool = Tool.LOOK


PLUGIN = "napari-panoptic"
KEPT_PLACES = 50
"""The number of cohorts whose last region, team and failure are remembered."""
_FILTERS = ("sides", "statuses", "classes", "causes", "verdicts")
HIDDEN_COLUMNS = (
    "area_px, centroid_x_px, centroid_y_px, hausdorff95_px, hausdorff_um, partner_class, "
    "partner_id, verdict"
)
"""Columns that the object table does not show unless the user wants them: it would scroll."""
UNFOLDED = "settings"
"""The panels that show everything at first."""
_LOGGER = logging.getLogger(__name__)


class Queue(MenuChoice):
    """How the next failure is found."""

    REGION = (
        "region by region",
        "N goes through the failures of this region, then to the next region.",
        "This region",
    )
    COHORT = (
        "whole cohort, worst first",
        "N goes to the next worst failure of all regions evaluated so far.",
        "Whole cohort",
    )


KeptT = TypeVar("KeptT")


class _Kept(Generic[KeptT]):
    """A preference that is one word or switch, of the type of its default."""

    def __init__(self, group: str, name: str, default: KeptT) -> None:
        self._group, self._name, self._default = group, name, default

    def __get__(self, preferences: Preferences, _owner: type[Preferences]) -> KeptT:
        kind: Any = type(self._default)
        try:
            value: KeptT = kind(preferences._get(self._group, self._name, self._default))
        except ValueError:
            return self._default
        return value

    def __set__(self, preferences: Preferences, value: KeptT) -> None:
        kept = str(value) if isinstance(value, StrEnum) else value
        preferences._set(self._group, self._name, kept)


@dataclass
class Preferences:
    """Reads and writes remembered values; one that makes no sense counts as unset."""

    _kept_here: dict[tuple[str, str], Any] = field(default_factory=dict)

    order = _Kept("desk", "order", WorstFirst.IMPACT)
    """What makes one failure worse than another."""
    others = _Kept("desk", "others", Others.SHOWN)
    """What the image shows beside the listed objects."""
    queue = _Kept("desk", "queue", Queue.COHORT)
    """How the next failure is found."""
    small_px = _Kept("desk", "small_px", 0)
    """Failures of a smaller area come last; 0 stands for the smallest 1 % of annotated objects."""
    team_view = _Kept("desk", "team_view", ViewMode.GRID)
    """What the canvas shows in the workspace for teams."""
    workspace = _Kept("desk", "workspace", "")
    """The name of the workspace shown last."""
    reviewer = _Kept("review", "reviewer", "")
    """The reviewer of an earlier start, offered at the next one; empty if there is none."""
    goes_on = _Kept("review", "goes_on", True)
    """Whether a verdict leads to the next failure without one."""
    mends_at_once = _Kept("review", "mends_at_once", False)
    """Whether a verdict mends the annotation at once."""
    claims = _Kept("review", "claims", "ask")
    """Whether a mended outline takes pixels of other objects: ask, keep or take."""
    follow = _Kept("desk", "follow", True)
    """Whether N brings a failure into view, large enough to judge."""
    overview = _Kept("desk", "overview", True)
    """Whether large regions have an overview."""

    @property
    def look(self) -> Look:
        """How objects are drawn."""
        try:
            return Look(
                ColourBy(self._get("desk", "colour_by", str(ColourBy.STATUS))),
                Display(self._get("desk", "display", str(Display.OUTLINE))),
                float(self._get("desk", "fill_opacity", FILL_OPACITY)),
                float(self._get("desk", "reference_line_px", REFERENCE_LINE_PX)),
                float(self._get("desk", "prediction_line_px", PREDICTION_LINE_PX)),
                bool(self._get("desk", "with_zone", True)),
            )
        except (TypeError, ValueError):
            return Look()

    @look.setter
    def look(self, look: Look) -> None:
        self._set("desk", "colour_by", str(look.colour_by))
        # Do not start with everything hidden.
        if look.display is not Display.HIDDEN:
            self._set("desk", "display", str(look.display))
        self._set("desk", "fill_opacity", look.fill_opacity)
        self._set("desk", "with_zone", look.with_zone)

    @property
    def object_filter(self) -> ObjectFilter:
        """Which objects the table lists."""
        found = self._json("desk", "filter")
        if not all(_are_words(words) for words in found.values()):
            return ObjectFilter()
        known: dict[str, Any] = {n: frozenset(found[n]) for n in _FILTERS if n in found}
        return ObjectFilter(**known)

    @object_filter.setter
    def object_filter(self, wanted: ObjectFilter) -> None:
        # The objects behind a figure are those of one region.
        words = {} if wanted.pairs is not None else {n: getattr(wanted, n) for n in _FILTERS}
        kept = {name: sorted(chosen) for name, chosen in words.items() if chosen is not None}
        self._set("desk", "filter", json.dumps(kept, ensure_ascii=False) if kept else "")

    @property
    def versions(self) -> VersionChoice:
        """Which teams are compared as versions, and where."""
        found = self._json("desk", "versions")
        try:
            return VersionChoice(
                str(found.get("old", "")),
                str(found.get("new", "")),
                VersionScope(found.get("scope", VersionScope.REGION)),
            )
        except ValueError:
            return VersionChoice()

    @versions.setter
    def versions(self, choice: VersionChoice) -> None:
        self._set("desk", "versions", json.dumps(asdict(choice), ensure_ascii=False))

    @property
    def tool(self) -> ToolInHand:
        """What the mouse does on points."""
        side, _, tool = str(self._get("desk", "tool", "")).partition(": ")
        try:
            return ToolInHand(Side(side), Tool(tool))
        except ValueError:
            return ToolInHand()

    @tool.setter
    def tool(self, tool: ToolInHand) -> None:
        is_none = tool.tool is Tool.LOOK
        self._set("desk", "tool", "" if is_none else f"{tool.side}: {tool.tool}")

    def arrangements(self) -> dict[str, Any]:
        """Return the user's own arrangements of workspaces, by desk and workspace."""
        return self._json("desk", "arrangements")

    def keep_arrangement(self, name: str, arrangement: Any | None) -> None:
        """Remember how the user arranged a workspace; None for the arrangement built in."""
        kept = self.arrangements()
        kept.pop(name, None)
        if arrangement is not None:
            kept[name] = arrangement
        self._set("desk", "arrangements", json.dumps(kept))

    def place(self, cohort: Path) -> tuple[str | None, str | None]:
        """Return the region and team of a cohort that were shown last; None if unknown."""
        found = self._json("desk", "places").get(str(cohort.absolute()))
        if not (isinstance(found, list) and len(found) == 2):
            return None, None
        region, team = (name if isinstance(name, str) else None for name in found)
        return region, team

    def keep_place(self, cohort: Path, region: str | None, team: str | None) -> None:
        """Remember the region and team of a cohort that are shown."""
        self._keep_newest("places", cohort, [region, team])

    def stop(self, cohort: Path) -> list[Any] | None:
        """Return where the queue of a cohort's failures was left; None if unknown."""
        found = self._json("desk", "stops").get(str(cohort.absolute()))
        return found if isinstance(found, list) else None

    def keep_stop(self, cohort: Path, stop: Sequence[str | int]) -> None:
        """Remember where the queue of a cohort's failures is."""
        self._keep_newest("stops", cohort, list(stop))

    @property
    def hidden_columns(self) -> frozenset[str]:
        """The names of the columns that the object table does not show."""
        names = str(self._get("desk", "hidden_columns", HIDDEN_COLUMNS)).split(",")
        return frozenset(name.strip() for name in names) & {column.name for column in COLUMNS}

    @hidden_columns.setter
    def hidden_columns(self, names: Collection[str]) -> None:
        self._set("desk", "hidden_columns", ", ".join(sorted(names)))

    def is_unfolded(self, panel: str) -> bool:
        """Return whether a panel shows everything, and not only its first line."""
        return panel in str(self._get("desk", "unfolded", UNFOLDED)).split(",")

    def set_unfolded(self, panel: str, unfolded: bool) -> None:
        """Remember whether a panel shows everything."""
        panels = set(str(self._get("desk", "unfolded", UNFOLDED)).split(",")) - {"", panel}
        self._set("desk", "unfolded", ",".join(sorted(panels | {panel} if unfolded else panels)))

    @property
    def last_cohort(self) -> Path | None:
        """The folder of the cohort opened last, where it is still there."""
        text = str(self._get("desk", "last_cohort", ""))
        return Path(text) if text and _is_folder(Path(text)) else None

    @last_cohort.setter
    def last_cohort(self, folder: Path | None) -> None:
        self._set("desk", "last_cohort", "" if folder is None else str(folder))

    def recent_cohorts(self) -> list[Path]:
        """Return the folders of cohorts that were shown, the newest first, if still there."""
        last = self.last_cohort
        shown = [Path(text) for text in reversed(self._json("desk", "places"))]
        known = dict.fromkeys(([] if last is None else [last.absolute()]) + shown)
        return [folder for folder in known if _is_folder(folder)]

    @property
    def tags(self) -> list[str]:
        """The user's own tags of reviews, the newest first."""
        return split_tags(str(self._get("review", "tags", "")))

    @tags.setter
    def tags(self, tags: Sequence[str]) -> None:
        self._set("review", "tags", joined_tags(tags))

    def drafts(self, cohort: Path) -> list[Any]:
        """Return the tags and notes of a cohort that were typed without a verdict."""
        found = self._json("review", "drafts").get(str(cohort.absolute()))
        return found if isinstance(found, list) else []

    def keep_drafts(self, cohort: Path, drafts: Sequence[Any]) -> None:
        """Remember the tags and notes of a cohort that were typed without a verdict."""
        kept = self._json("review", "drafts")
        kept.pop(str(cohort.absolute()), None)
        if drafts:
            kept[str(cohort.absolute())] = list(drafts)
        self._set("review", "drafts", json.dumps(kept, ensure_ascii=False))

    def review_file(self, cohort: Path) -> Path | None:
        """Return the review file that the user chose for a cohort, or None."""
        chosen = self._json("review", "files").get(str(cohort.absolute()))
        return Path(chosen) if isinstance(chosen, str) else None

    def choose_review_file(self, cohort: Path, file: Path) -> None:
        """Remember which review file the user chose for a cohort."""
        chosen = self._json("review", "files") | {str(cohort.absolute()): str(file.absolute())}
        self._set("review", "files", json.dumps(chosen, ensure_ascii=False))

    def _keep_newest(self, name: str, cohort: Path, value: Any) -> None:
        """Remember a value of a cohort, and forget those of the cohorts opened longest ago."""
        kept = self._json("desk", name)
        kept.pop(str(cohort.absolute()), None)
        kept[str(cohort.absolute())] = value
        while len(kept) > KEPT_PLACES:
            kept.pop(next(iter(kept)))
        self._set("desk", name, json.dumps(kept, ensure_ascii=False))

    def _json(self, group: str, name: str) -> dict[str, Any]:
        try:
            found = json.loads(str(self._get(group, name, "")) or "{}")
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def _get(self, group: str, name: str, without: Any) -> Any:
        settings = self._settings()
        if settings is None:
            return self._kept_here.get((group, name), without)
        # napari may still know the settings of an earlier version.
        return getattr(getattr(settings, group), name, without)

    def _set(self, group: str, name: str, value: Any) -> None:
        settings = self._settings()
        if settings is None:
            self._kept_here[group, name] = value
            return
        try:
            setattr(getattr(settings, group), name, value)
        except OSError as error:
            # Set for now; failing to remember it is no reason to stop the user's work.
            _LOGGER.warning("the setting %s.%s cannot be remembered: %s", group, name, error)

    def _settings(self) -> Any | None:
        try:
            return get_plugin_settings(PLUGIN)
        except KeyError:
            return None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # such as a name that is too long
        return False


def _are_words(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(word, str) for word in found)


PREFERENCES = Preferences()
"""The one set of preferences of the program."""
