"""Links: short texts that lead to objects of a cohort, also on other machines.

A link is a cohort, then a region, a team, objects and settings, as far as they matter::

    panoptic:monusac@5f3a91c2-77ab3e/TCGA-55-1594_1/SJTU_426/reference=12+14/iou-threshold=0.4

It names no folder. The fingerprint after ``@`` depends on the names of the regions and teams, so
that a copy of the cohort has the same one. All characters are safe in shells, pages and messages.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from string import ascii_letters, digits
from typing import Any, Protocol, Self

from napari_panoptic.common.errors import CohortError, SettingsError
from napari_panoptic.common.text import composed, counted, english_list, shortened, similar
from napari_panoptic.values.cohort import Cohort, Source
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side

SCHEME = "panoptic:"
LONGEST = 4000
"""Longest link in characters."""
MOST_OBJECTS = 200
"""The most objects of a link."""
LONGEST_NAME = 60
"""Longest name of a cohort in a link: it is there for people, and the fingerprint identifies."""
SHAPE = "panoptic:COHORT@FINGERPRINT/REGION/TEAM/reference=ID"
COPY_AGAIN = "Copy the link again."
_ALLOWED = re.compile(r"[A-Za-z0-9._~@/=+%-]")
_UNESCAPED = frozenset(map(ord, ascii_letters + digits + "._~-"))
_FINGERPRINT = re.compile(r"([0-9a-f]{8})-([0-9a-f]{6})")
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_ID, _LARGEST_ID = re.compile(r"[1-9][0-9]{0,18}"), 2**63 - 1
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e-?[0-9]{1,3})?")
_WORD = re.compile(r"[a-z0-9][a-z0-9+._-]{0,199}")
_PATH = re.compile(r"[\\/]|~[^\\/]*[\\/]|[A-Za-z]:[\\/]|(.*[\\/])?\.\.?([\\/]|$)", re.DOTALL)
"""How a name begins that is a path out of a folder."""
_SOURCE = "source"
_CONTROL = ("Cc", "Zl", "Zp")
_DEFAULTS = EvaluationSettings()
_FIELDS = {f.name.replace("_", "-"): f.name for f in fields(EvaluationSettings)}


class LinkError(SettingsError):
    """A text is no link, or a link to nothing that can be linked to."""


@dataclass(frozen=True)
class CohortKey:
    """What identifies a cohort on any machine: its names, without any folder."""

    #: The cohort's name as links have it, for people.
    name: str
    #: Digests of the names of its regions and patients, and of its teams.
    regions: str
    teams: str

    def __post_init__(self) -> None:
        """Check that these are a name and digests."""
        if self.name != _label(self.name):
            raise LinkError(
                f"expected the name of a cohort in the link, found '{self.name}', which is a path "
                f"or cannot be shown. {COPY_AGAIN}"
            )
        if not _FINGERPRINT.fullmatch(self.fingerprint):
            raise LinkError(
                "expected a fingerprint such as 5f3a91c2-77ab3e after the cohort's name in the "
                f"link, found '{self.fingerprint}'. {COPY_AGAIN}"
            )

    @classmethod
    def of(cls, cohort: Cohort) -> Self:
        """Return the key of a cohort. Files are not read, and the order of names is ignored."""
        regions = (f"{region.patient}\0{region.name}" for region in cohort.regions)
        return cls(_label(cohort.name), _digest(regions)[:8], _digest(cohort.team_names)[:6])

    @property
    def fingerprint(self) -> str:
        """The digests as a link has them."""
        return f"{self.regions}-{self.teams}"

    def differences(self, other: CohortKey) -> str:
        """Describe what of another cohort's content differs; empty if nothing does."""
        found = [
            name for name in ("regions", "teams") if getattr(self, name) != getattr(other, name)
        ]
        return english_list(found)


class NamedObject(Protocol):
    """An object, identified by its names."""

    @property
    def team(self) -> str:
        """Name of the team."""

    @property
    def region(self) -> str:
        """Name of the region."""

    @property
    def side(self) -> Side:
        """The object's side."""

    @property
    def id(self) -> int:
        """The object's id."""


LinkedObject = tuple[Side, int]
"""Side and id of an object."""


@dataclass(frozen=True)
class ObjectLink:
    """A cohort, and what to show of it.

    Raises
    ------
    LinkError
        For names with control characters, paths in place of names, and too many objects.
    """

    #: The cohort.
    cohort: CohortKey
    #: The region; empty for none in particular.
    region: str = ""
    #: The team; empty for none in particular. A team has a region.
    team: str = ""
    #: Objects of the region, reference objects first; the first one is to be selected.
    objects: tuple[LinkedObject, ...] = ()
    #: How to evaluate.
    settings: EvaluationSettings = _DEFAULTS
    #: The format of the predictions; None for the usual one.
    source: Source | None = None

    def __post_init__(self) -> None:
        """Order the objects by side, and check everything."""
        by_side = sorted(self.objects, key=lambda one: one[0] is not Side.REFERENCE)
        object.__setattr__(self, "objects", tuple(by_side))
        object.__setattr__(self, "region", composed(self.region))
        object.__setattr__(self, "team", composed(self.team))
        for what, name in (("region", self.region), ("team", self.team)):
            _check_name(what, name)
        if (self.team or self.objects) and not self.region:
            raise LinkError(f"a link to a team or to objects names their region. {COPY_AGAIN}")
        if len(self.objects) > MOST_OBJECTS:
            raise LinkError(
                f"a link can have up to {MOST_OBJECTS} objects, found {len(self.objects)}. "
                "Select fewer objects."
            )
        if len(set(self.objects)) < len(self.objects):
            raise LinkError(f"the link names an object twice. {COPY_AGAIN}")
        if not all(0 < id_ <= _LARGEST_ID for _, id_ in self.objects):
            raise LinkError(
                "the ids of objects in a link are numbers from 1. Select other objects."
            )
        if self.source is not None and not _WORD.fullmatch(self.source):
            raise LinkError(f"the link names no format of predictions with 'source='. {COPY_AGAIN}")
        if len(self.text) > LONGEST:
            raise LinkError(
                f"a link can have up to {LONGEST} characters, this one would have "
                f"{len(self.text)}. Select fewer objects."
            )

    @property
    def text(self) -> str:
        """The link."""
        parts = [f"{SCHEME}{_written(self.cohort.name)}@{self.cohort.fingerprint}"]
        parts += [_written(name) for name in (self.region, self.team) if name]
        for side in Side:
            if ids := [str(id_) for own, id_ in self.objects if own is side]:
                parts.append(f"{side}={'+'.join(ids)}")
        return "/".join([*parts, *_written_settings(self.settings, self.source)])

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a link.

        Parameters
        ----------
        text
            From anywhere; a text that is no link is refused. White space around it is ignored.

        Raises
        ------
        LinkError
            For a text that is no link; the message says what was expected and found.
        """
        text = text if len(text) > LONGEST + 100 else text.strip(" \t\r\n")
        _check_text(text)
        head, *parts = text.removeprefix(SCHEME).split("/")
        name, at, fingerprint = head.partition("@")
        if not at:
            raise LinkError(
                f"expected COHORT@FINGERPRINT after '{SCHEME}' in the link, found "
                f"'{shortened(head, 80)}'. {COPY_AGAIN}"
            )
        regions, _, teams = fingerprint.partition("-")
        cohort = CohortKey(_read(name), regions, teams)
        names = [part for part in parts if "=" not in part]
        if len(names) > 2 or parts[: len(names)] != names or not all(names):
            raise LinkError(
                f"expected '{SHAPE}', in this order and with nothing empty, found "
                f"'{shortened(text, 200)}'. {COPY_AGAIN}"
            )
        region, team = (*map(_read, names), "", "")[:2]
        return cls(cohort, region, team, **_read_entries(parts[len(names) :]))


@dataclass(frozen=True)
class LinkMaker:
    """Writes the links to many objects of one cohort, as for a table.

    `of` makes one; `text` and `to` return a link, or an empty text where there can be none.
    """

    #: The cohort, and how its objects were found.
    cohort: CohortKey
    settings: EvaluationSettings = _DEFAULTS
    source: Source | None = None
    _places: dict[tuple[str, str], str] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def _tail(self) -> str:
        """The end of every link: settings and source."""
        return "".join(f"/{part}" for part in _written_settings(self.settings, self.source))

    @classmethod
    def of(
        cls,
        cohort: Cohort,
        settings: EvaluationSettings = _DEFAULTS,
        source: Source | None = None,
    ) -> Self:
        """Make the links of a cohort.

        Parameters
        ----------
        cohort
            The cohort.
        settings, source
            Under which the objects exist. Links are without the setting whether distances are
            measured, which decides no object.
        """
        return cls(CohortKey.of(cohort), settings.replaced(distances=True), source)

    def link(
        self, region: str = "", team: str = "", objects: Sequence[LinkedObject] = ()
    ) -> ObjectLink:
        """Return the link to a region, a team in it, and objects; see `ObjectLink` for errors."""
        return ObjectLink(self.cohort, region, team, tuple(objects), self.settings, self.source)

    def text(self, region: str, team: str, side: Side | str, id_: int) -> str:
        """Return the link to one object as text; empty where a name cannot be in a link.

        Parameters
        ----------
        region, team
            Where the object is; the team beside which a reference object is shown.
        side, id_
            The object.
        """
        place = region, team
        if place not in self._places:
            try:
                self._places[place] = self.link(region, team).text.removesuffix(self._tail)
            except LinkError:
                self._places[place] = ""
        head = self._places[place]
        return f"{head}/{side}={id_}{self._tail}" if head and id_ > 0 else ""

    def to(self, objects: Iterable[NamedObject]) -> str:
        """Return the link to objects as text; empty unless they are in one region and team."""
        try:
            return self.to_all(objects).text
        except LinkError:
            return ""

    def to_all(self, objects: Iterable[NamedObject]) -> ObjectLink:
        """Return the link to objects of one region and team.

        Raises
        ------
        LinkError
            For no objects, for those of several regions or teams, and as `ObjectLink`.
        """
        found = list(objects)
        places = {(one.region, one.team) for one in found}
        if len(places) != 1:
            raise LinkError(
                "a link leads to objects of one region and team, found "
                f"{counted(len(places), 'place')}. Select objects of one region and team."
            )
        ((region, team),) = places
        return self.link(region, team, list(dict.fromkeys((one.side, one.id) for one in found)))


def check_link(link: ObjectLink, cohort: Cohort) -> ObjectLink:
    """Return a link whose names are spelled as in a cohort that may be another one.

    Raises
    ------
    LinkError
        If the cohort lacks the region, the team or the format of predictions of the link.
    """
    remedy = f"Open the cohort of the link, “{link.cohort.name}”."
    try:
        region = cohort.region(link.region).name if link.region else ""
        team = cohort.checked_team(link.team) if link.team else ""
    except CohortError as error:
        why = str(error).removesuffix("?")
        raise LinkError(f"Cannot open the link: {why}. {remedy}") from error
    if link.source is not None:
        known = {str(form) for forms in cohort.predictions.values() for form in forms}
        if link.source not in known:
            raise LinkError(
                f"Cannot open the link: it needs predictions in the format '{link.source}', found "
                f"{english_list(sorted(known)) or 'none'}. {remedy}"
            )
    return replace(link, region=region, team=team)


# --- writing --------------------------------------------------------------------------------------


def _written(name: str) -> str:
    """Write a name; lone surrogates stand for bytes of a file name, and come back."""
    encoded = name.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if byte in _UNESCAPED else f"%{byte:02X}" for byte in encoded)


def _written_settings(settings: EvaluationSettings, source: Source | None) -> list[str]:
    """Return what differs from the default settings."""
    changed = settings.differences(_DEFAULTS)
    parts = [
        f"{word}={_value_text(changed[name][0])}"
        for word, name in _FIELDS.items()
        if name in changed
    ]
    return parts if source is None else [*parts, f"{_SOURCE}={source}"]


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, str) else repr(value)


def _label(name: str) -> str:
    """Return the name of a cohort as links have it: without what could make it a path."""
    shown = "".join(
        "-"
        if letter in "/\\" or unicodedata.category(letter) in (*_CONTROL, "Cf", "Cs")
        else letter
        for letter in composed(name)
    )
    return shown.strip(" .~")[:LONGEST_NAME].strip(" .~")


def _digest(names: Iterable[str]) -> str:
    text = "\n".join(sorted(map(composed, names)))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# --- reading --------------------------------------------------------------------------------------


def _check_text(text: str) -> None:
    """Check length and characters, before anything is made of them."""
    if len(text) > LONGEST:
        raise LinkError(
            f"expected a link of up to {LONGEST} characters, found {len(text)}. {COPY_AGAIN}"
        )
    if not text.startswith(SCHEME):
        raise LinkError(
            f"expected a link that begins with '{SCHEME}', found '{shortened(text, 80)}'. "
            f"{COPY_AGAIN}"
        )
    odd = sorted(set(_ALLOWED.sub("", text.removeprefix(SCHEME))))
    if odd:
        raise LinkError(
            "expected letters of English, digits and . _ ~ @ / = + % - in the link, found "
            f"{english_list([ascii(letter) for letter in odd], limit=4)}. {COPY_AGAIN}"
        )
    if "%" in _ESCAPE.sub("", text):
        raise LinkError(f"expected two digits from 0 to F after each % of the link. {COPY_AGAIN}")


def _read(part: str) -> str:
    """Return a name as it is without percent-encoding."""
    try:
        encoded = _ESCAPE.sub(lambda escape: chr(int(escape[0][1:], 16)), part).encode("latin-1")
        return composed(encoded.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:
        raise LinkError(
            f"expected names in UTF-8 in the link, found '{shortened(part, 80)}'. {COPY_AGAIN}"
        ) from None


def _check_name(what: str, name: str) -> None:
    if any(unicodedata.category(letter) in _CONTROL for letter in name):
        raise LinkError(
            f"the {what} '{shortened(name, 80)}' has control characters, which a link cannot have. "
            f"Rename the {what}."
        )
    if _PATH.match(name):
        raise LinkError(
            f"expected the name of a {what} in the link, found the path '{shortened(name, 80)}'. "
            f"{COPY_AGAIN}"
        )


def _read_entries(parts: Sequence[str]) -> dict[str, Any]:
    """Return objects, settings and source."""
    entries: dict[str, str] = {}
    for part in parts:
        word, _, value = part.partition("=")
        if word in entries:
            raise LinkError(f"the link has '{word}=' twice. {COPY_AGAIN}")
        entries[word] = value
    objects = [
        (side, id_) for side in Side for id_ in _read_ids(str(side), entries.pop(str(side), None))
    ]
    source = entries.pop(_SOURCE, None)
    changed = {_field(word): _read_value(word, value) for word, value in entries.items()}
    try:
        settings = EvaluationSettings(**changed)
    except SettingsError as error:
        raise LinkError(f"Cannot use a setting of the link: {error}. {COPY_AGAIN}") from error
    return {
        "objects": tuple(objects),
        "settings": settings,
        "source": None if source is None else Source(source),
    }


def _read_ids(side: str, text: str | None) -> list[int]:
    if text is None:
        return []
    ids = text.split("+", MOST_OBJECTS + 1)
    if not all(_ID.fullmatch(id_) and int(id_) <= _LARGEST_ID for id_ in ids[: MOST_OBJECTS + 1]):
        raise LinkError(
            f"expected ids of objects after '{side}=' in the link, such as 12+14, found "
            f"'{shortened(text, 80)}'. {COPY_AGAIN}"
        )
    return [int(id_) for id_ in ids[: MOST_OBJECTS + 1]]


def _field(word: str) -> str:
    if word not in _FIELDS:
        known = [*map(str, Side), *_FIELDS, _SOURCE]
        hint = english_list(similar(word, known)) or english_list(known, limit=len(known))
        raise LinkError(
            f"the link has an unknown entry '{shortened(word, 80)}='; known are {hint}. "
            f"{COPY_AGAIN}"
        )
    return _FIELDS[word]


def _read_value(word: str, text: str) -> Any:
    """Return the value of a setting, of the type that it has."""
    default = getattr(_DEFAULTS, _FIELDS[word])
    if isinstance(default, bool):
        if text in ("yes", "no"):
            return text == "yes"
    elif isinstance(default, str):
        if _WORD.fullmatch(text):
            return text
    elif len(text) < 40 and _NUMBER.fullmatch(text):
        number = float(text)
        if default is None or isinstance(default, float):
            return number
        if number.is_integer():
            return int(number)
    raise LinkError(f"the link has an unknown value: '{word}={shortened(text, 80)}'. {COPY_AGAIN}")
