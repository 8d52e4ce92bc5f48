"""The description of a cohort's folder: ``cohort.toml``."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from napari_panoptic.common.errors import CohortError, SettingsError, UnreadableFileError
from napari_panoptic.common.text import composed, english_list
from napari_panoptic.io.cohorts.layouts import Layout, MaskPatterns, Patterns
from napari_panoptic.io.cohorts.patches import PlacedRegion, placed_region
from napari_panoptic.io.cohorts.patients import PatientExpression
from napari_panoptic.io.cohorts.patterns import Listing, Pattern
from napari_panoptic.io.files.guard import check_length
from napari_panoptic.io.formats.format import Format, PerClass
from napari_panoptic.io.formats.registry import known_forms
from napari_panoptic.values.cohort import (
    MONUSAC_CLASSES,
    Axes,
    ClassScheme,
    Crowds,
    Multipolygons,
    Objects,
    OutlineRules,
    Rgb,
    Source,
    Vertices,
)

DESCRIPTION = "cohort.toml"
TASK_KEY = "task"
ARRAY_ENDING = ".npy"
"""Ending of an array that holds the images of many regions."""
PATCHES_KEY = "patches"
"""Where regions lie in slides."""
CLASSES_KEY = "classes"
"""Under reference and predictions: where tables of classes lie."""
PROBABILITY_KEY = "probability"
"""Under predictions: where probability maps lie."""
RULE_KEYS: Mapping[str, tuple[type[StrEnum] | None, tuple[Source, ...]]] = {
    "vertices": (Vertices, ()),
    "multipolygons": (Multipolygons, (Source.GEOJSON,)),
    "crowds": (Crowds, (Source.COCO_INSTANCES,)),
    "score": (None, (Source.GEOJSON, Source.ANNOTATION_STORE, Source.LABELS)),
}
"""Under reference and predictions: how outlines and scores are read, in which of some words (None
for any text), and in which forms that matters; see `forms_of_rule`."""
PLACE_KEYS = ("axes", "scale", "offset", "objects")
"""Under reference and predictions: where pixels of the files lie, and what objects of masks are."""
SLIDE_BOUNDS = "slide-bounds"
"""The offset of outlines that count from the bounds of their slide."""
IGNORED = ""
"""The target of aliases of classes whose objects are left out on purpose."""

LEAST_SCALE = 0.001
"""Scales and micrometres per pixel are between this and its inverse."""
LARGEST_COORDINATE = 2.0**29
"""Of an offset, in px."""
_LONGEST_DESCRIPTION = 2**20
"""In bytes."""
_MOST_DOTS = 200
"""In a line."""

_LayoutT = TypeVar("_LayoutT")
_WordT = TypeVar("_WordT", bound=StrEnum)
_PatternT = TypeVar("_PatternT", bound=Pattern)


def cohort_listing(folder: str | Path, *, allow_outside: bool) -> Listing:
    """Make the listing of a cohort's folder, which its ``cohort.toml`` may stand for."""
    root = Path(folder)
    if root.name == DESCRIPTION and root.is_file():
        root = root.parent
    return Listing(root, allow_outside)


def description_in(listing: Listing) -> Path | None:
    """Find the ``cohort.toml`` of a folder, or None."""
    description = listing.root / DESCRIPTION
    is_there = any(entry.path == description for entry in listing.entries(listing.root))
    return description if is_there else None


def read_description(path: Path, text: str | None = None) -> Layout:
    """Read a ``cohort.toml`` about nuclei, or a text that may become it; as `described`."""
    return described(path, _layout, text)


def described(
    path: Path, understand: Callable[[dict[str, Any]], _LayoutT], text: str | None = None
) -> _LayoutT:
    """Read a ``cohort.toml``.

    Parameters
    ----------
    path
        The file.
    understand
        Makes a layout of its table.
    text
        Read instead of the content of the file; None to read the file.

    Raises
    ------
    CohortError
        If it cannot be read or understood; the message names the line or
        the key, and similar keys that exist.
    """
    table = read_toml(path) if text is None else tomllib.loads(composed(text))
    try:
        return understand(table)
    except (CohortError, SettingsError) as error:
        raise CohortError(error.message, path=path) from error


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises
    ------
    CohortError
        If it cannot be read, is not UTF-8, or is no TOML.
    """
    try:
        check_length(path, "a description", _LONGEST_DESCRIPTION)
        text = path.read_text(encoding="utf-8-sig")
        _check_dots(text)
        return tomllib.loads(composed(text))
    except UnreadableFileError as error:
        raise CohortError(error.message, path=path) from error
    except OSError as error:
        raise CohortError(f"it cannot be read ({error.strerror})", path=path) from error
    except UnicodeDecodeError as error:
        raise CohortError("it is not UTF-8 text; save it as UTF-8", path=path) from error
    except (ValueError, RecursionError) as error:
        # Numbers of thousands of digits and very deep lists are none of the library's own errors.
        raise CohortError(f"it is no valid TOML: {error}", path=path) from error


def _check_dots(text: str) -> None:
    """Refuse keys of very many parts: reading one takes memory for the square of their number.

    Raises
    ------
    ValueError
        For a line with more than `_MOST_DOTS` dots that is no comment.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _MOST_DOTS and not line.lstrip().startswith("#"):
            raise ValueError(
                f"line {number} has more than {_MOST_DOTS} dots; write lists in several lines"
            )


def _layout(table: dict[str, Any]) -> Layout:
    known = (TASK_KEY, "name", "classes", "ambiguous", "masks", "aliases", "files", PATCHES_KEY)
    check_keys(table, "", known)
    files = table_at(table, "files", required=True)
    sides = ("image", "reference", "predictions", "annotation")
    check_keys(files, "files", (*sides, "patient", "mpp", PATCHES_KEY))
    image = _image_patterns(files.get("image", []))
    reference = _mask_patterns(files, "reference")
    if not image and not reference.all:
        raise CohortError(
            "[files] must state where the images or annotations are: give image or reference"
        )
    layout = Layout(
        scheme=scheme_in(table),
        image=image,
        reference=reference,
        predictions=_mask_patterns(files, "predictions", team=True),
        annotation=_mask_patterns(files, "annotation"),
        patient=patient_expression(files.get("patient")),
        name=name_in(table),
        mpp=_number(files["mpp"], "files.mpp") if "mpp" in files else None,
        patches=_patches(table),
        patch_tables=pattern_list(files.get(PATCHES_KEY, []), f"files.{PATCHES_KEY}", set(), set()),
    )
    _check_patches(layout)
    return layout


def _patches(table: dict[str, Any]) -> tuple[PlacedRegion, ...]:
    """Read where regions lie in slides."""
    patches = table_at(table, PATCHES_KEY)
    for region in patches:
        place = table_at(patches, region, prefix=f"{PATCHES_KEY}.")
        check_keys(place, f"{PATCHES_KEY}.{region}", ("slide", "x", "y", "scale"))
    return tuple(
        placed_region(region, place, f"{PATCHES_KEY}.{region}") for region, place in patches.items()
    )


def _check_patches(layout: Layout) -> None:
    """Check that there are outlines of slides if, and only if, regions have places in slides."""
    of_slides = [pattern for pattern in layout.all_patterns if "slide" in pattern.fields]
    has_places = bool(layout.patches or layout.patch_tables)
    if of_slides and not has_places:
        raise CohortError(
            f"'{of_slides[0].text}' holds outlines of slides: say where regions lie in them, by "
            f"files.{PATCHES_KEY} (a table) or [{PATCHES_KEY}.REGION] with x, y and scale"
        )
    if has_places and not of_slides:
        raise CohortError(
            f"{PATCHES_KEY} places regions in slides, but no path of outlines has {{slide}}; write "
            f'it there, as in reference.geojson = "{{slide}}.geojson"'
        )


def name_in(table: dict[str, Any]) -> str | None:
    """Read the name of the cohort; None for the folder's."""
    return text_at(table["name"], "name") if "name" in table else None


def scheme_in(table: dict[str, Any]) -> ClassScheme:
    """Read the classes, and how masks show them."""
    classes = table_at(table, "classes", required=True)
    ambiguous = table_at(table, "ambiguous")
    masks = table_at(table, "masks")
    aliases = table_at(table, "aliases")
    check_keys(ambiguous, "ambiguous", ("name",))
    check_keys(masks, "masks", ("border", "background"))
    defaults = MONUSAC_CLASSES
    return ClassScheme(
        names=tuple(classes),
        colours=tuple(_colour(value, f"classes.{name}") for name, value in classes.items()),
        ambiguous=text_at(ambiguous["name"], "ambiguous.name") if "name" in ambiguous else None,
        border=_colours(masks, "border", defaults.border),
        background=_colours(masks, "background", defaults.background),
        aliases={
            name: text_at(target, f"aliases.{name}")
            for name, target in aliases.items()
            if target != IGNORED
        },
        ignored=tuple(name for name, target in aliases.items() if target == IGNORED),
    )


def _mask_patterns(files: dict[str, Any], key: str, *, team: bool = False) -> MaskPatterns:
    where = f"files.{key}"
    if isinstance(files.get(key), str | list):
        raise CohortError(
            f"{where} must name the format of the files, such as {where}.labels, .geojson or "
            f".imagescope (all are in docs/cohorts.md), found {files[key]!r} alone"
        )
    table = table_at(files, key, prefix="files.")
    readable = [form.name for form in known_forms().values() if form.load is not None]
    places = (CLASSES_KEY, PROBABILITY_KEY) if team else (CLASSES_KEY,)
    check_keys(table, where, [*readable, *places, *RULE_KEYS, *PLACE_KEYS])
    optional = {"patient"} | ({"team"} if team else set())
    forms = {}
    for name, value in table.items():
        if name in places or name in RULE_KEYS or name in PLACE_KEYS:
            continue
        form = known_forms()[name]
        forms[form.source] = _form_patterns(value, f"{where}.{name}", form, optional)
    sidecars = table.get(CLASSES_KEY, [])
    return MaskPatterns(
        forms,
        pattern_list(sidecars, f"{where}.{CLASSES_KEY}", {"region"}, optional),
        _rules(table, where, team=team),
        pattern_list(
            table.get(PROBABILITY_KEY, []), f"{where}.{PROBABILITY_KEY}", {"region"}, optional
        ),
    )


def _rules(table: dict[str, Any], where: str, *, team: bool) -> Mapping[str, OutlineRules]:
    """Read how outlines are read: a word for all teams, or a table with a word for some."""
    by_team: dict[str, dict[str, Any]] = {}
    for key, (words, _) in RULE_KEYS.items():
        if key not in table:
            continue
        forms = forms_of_rule(key)
        if not any(form in table for form in forms):
            raise CohortError(
                f"{where}.{key} states how {english_list(forms)} files are read, but {where} has "
                f"none; remove it, or add {where}.{forms[0]}"
            )
        for name, place, word in _by_team(table, key, where, team=team):
            read = text_at(word, place) if words is None else _word(word, words, place)
            by_team.setdefault(name, {})[key] = read
    for name, place, value in _by_team(table, "axes", where, team=team):
        by_team.setdefault(name, {})["axes"] = _word(value, Axes, place)
    for name, place, value in _by_team(table, "objects", where, team=team):
        by_team.setdefault(name, {})["objects"] = _word(value, Objects, place)
    for name, place, value in _by_team(table, "scale", where, team=team):
        by_team.setdefault(name, {})["scale"] = _number(value, place)
    for name, place, value in _by_team(table, "offset", where, team=team):
        own = by_team.setdefault(name, {})
        if value == SLIDE_BOUNDS:
            own["from_bounds"] = True
        else:
            own["offset_xy"] = _offset(value, place)
    return {name: OutlineRules(**rules) for name, rules in by_team.items()}


def forms_of_rule(key: str) -> tuple[Source, ...]:
    """Return the forms that are read as a rule of `RULE_KEYS` states."""
    if key != "vertices":
        return RULE_KEYS[key][1]
    return tuple(form.source for form in known_forms().values() if form.has_conventions)


def _by_team(
    table: dict[str, Any], key: str, where: str, *, team: bool
) -> Iterator[tuple[str, str, Any]]:
    """Yield the team (casefolded; "" for all others), the place and the value of each rule."""
    if key not in table:
        return
    value = table[key]
    if isinstance(value, dict) and not team:
        raise CohortError(f"{where}.{key} must be one value, found a table of teams")
    named = value if isinstance(value, dict) else {"": value}
    for name, each in named.items():
        yield name.casefold(), f"{where}.{key}.{name}" if name else f"{where}.{key}", each


def _word(value: Any, words: type[_WordT], place: str) -> _WordT:
    if value not in [str(known) for known in words]:
        known = " or ".join(f'"{known}"' for known in words)
        raise CohortError(f"{place} must be {known}, found {value!r}")
    return words(value)


def _number(value: Any, place: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not LEAST_SCALE <= value <= 1 / LEAST_SCALE:
        raise CohortError(
            f"{place} must be a number from {LEAST_SCALE:g} to {1 / LEAST_SCALE:g}, found {value!r}"
        )
    return float(value)


def _offset(value: Any, place: str) -> tuple[float, float]:
    match value:
        case [int() | float() as x, int() | float() as y] if (
            abs(x) <= LARGEST_COORDINATE and abs(y) <= LARGEST_COORDINATE
        ):
            return float(x), float(y)
    raise CohortError(
        f'{place} must be two numbers of px, such as [1024, 0], or "{SLIDE_BOUNDS}", found '
        f"{value!r}"
    )


def _form_patterns(value: Any, key: str, form: Format, optional: set[str]) -> Patterns:
    """Read where files of a form lie; outlines of slides have {slide} instead of {region}."""
    required, allowed = _placeholders(form)
    of_slides = {"slide"} if form.outlines is not None and form.items is None else set()
    patterns = pattern_list(value, key, set(), required | allowed | optional | of_slides)
    for pattern in patterns:
        needed = {"slide"} if "slide" in pattern.fields else required
        pattern_list(pattern.text, key, needed, optional | allowed)
    return patterns


def _placeholders(form: Format) -> tuple[set[str], set[str]]:
    """Return which placeholders the patterns of a form need, and which others they may have."""
    required: set[str] = set()
    allowed: set[str] = set()
    # The regions of a file that holds many have names of their own.
    (required if form.items is None else allowed).add("region")
    if form.per_class is not PerClass.NEVER:
        (required if form.per_class is PerClass.ALWAYS else allowed).add("class")
    return required, allowed


def _image_patterns(value: Any) -> Patterns:
    patterns = pattern_list(value, "files.image", set(), {"region", "patient"})
    # Without {region} a file holds the images of many, which only arrays do.
    for pattern in patterns:
        if not pattern.text.casefold().endswith(ARRAY_ENDING):
            pattern_list(pattern.text, "files.image", {"region"}, {"patient"})
    return patterns


def pattern_list(value: Any, key: str, required: set[str], optional: set[str]) -> Patterns:
    """Read a path pattern or a list of them, with the placeholders that they need."""
    return pattern_list_of(Pattern, value, key, required, optional)


def pattern_list_of(
    kind: type[_PatternT], value: Any, key: str, required: set[str], optional: set[str]
) -> tuple[_PatternT, ...]:
    """Read patterns of a kind, which has placeholders of its own; as `pattern_list`."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise CohortError(f"{key} must be a path pattern or a list of them, found {value!r}")
    patterns = tuple(kind(text) for text in texts)
    for pattern in patterns:
        missing = sorted(required - pattern.fields)
        surplus = sorted(pattern.fields - required - optional)
        if missing or surplus:
            problem = "needs" if missing else "cannot have"
            names = english_list([f"{{{name}}}" for name in missing or surplus])
            raise CohortError(f"{key} {problem} the placeholder {names}, found '{pattern.text}'")
    return patterns


def patient_expression(value: Any) -> PatientExpression | None:
    """Read how to find the patient in a region's name; return None if it is not described."""
    return None if value is None else PatientExpression(text_at(value, "files.patient"))


def table_at(
    parent: dict[str, Any], key: str, *, prefix: str = "", required: bool = False
) -> dict[str, Any]:
    """Read a table; an empty one where it is left out."""
    value = parent.get(key, {})
    if not isinstance(value, dict):
        raise CohortError(f"{prefix}{key} must be a table, found {value!r}")
    if required and not value:
        raise CohortError(f"the table [{prefix}{key}] is missing or empty")
    return value


def check_keys(table: Mapping[str, Any], where: str, known: Sequence[str]) -> None:
    """Refuse keys that mean nothing; the message names similar ones."""
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=2, cutoff=0.5)
            hint = f"did you mean {' or '.join(close)}?" if close else ""
            place = f"in [{where}]" if where else "at the top"
            raise CohortError(
                f"unknown key '{key}' {place}; {hint or f'known are {english_list(known)}'}"
            )


def text_at(value: Any, key: str) -> str:
    """Read a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise CohortError(f"{key} must be text, found {value!r}")
    return value


def _colours(table: dict[str, Any], key: str, default: tuple[Rgb, ...]) -> tuple[Rgb, ...]:
    value = table.get(key)
    if value is None:
        return default
    if not isinstance(value, list):
        raise CohortError(f"masks.{key} must be a list of colours, found {value!r}")
    return tuple(_colour(colour, f"masks.{key}") for colour in value)


def _colour(value: Any, key: str) -> Rgb:
    match value:
        case [int(red), int(green), int(blue)] if all(0 <= v <= 255 for v in value):
            return (red, green, blue)
    raise CohortError(
        f"{key} must be a colour of three numbers from 0 to 255, such as [255, 0, 0], "
        f"found {value!r}"
    )
