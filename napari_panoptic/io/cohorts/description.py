"""The description of a cohort's folder: ``cohort.toml``."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from napari_panoptic.common.errors import CohortError, SettingsError, UnreadableFileError
from napari_panoptic.common.text import composed, english_list
from napari_panoptic.io.cohorts import schema
from napari_panoptic.io.cohorts.layouts import Layout, MaskPatterns, PatientPattern
from napari_panoptic.io.cohorts.patches import placed_region
from napari_panoptic.io.cohorts.patterns import Listing, Pattern
from napari_panoptic.io.formats.format import Format, PerClass
from napari_panoptic.io.formats.registry import known_forms
from napari_panoptic.io.tables.csv_tables import read_text
from napari_panoptic.values.cohort import (
    MONUSAC_CLASSES,
    Axes,
    ClassScheme,
    Crowds,
    MaskObjects,
    Multipolygons,
    OutlineRules,
    Source,
    Vertices,
)

DESCRIPTION = "cohort.toml"
TASK_KEY = "task"
ARRAY_ENDING = ".npy"
"""Ending of an array that holds the images of many regions."""
PATCHES_KEY = "patches"
"""Key of the table that says where regions lie in slides."""
CLASSES_KEY = "classes"
"""Key under reference and predictions, for the places of tables of classes."""
PROBABILITY_KEY = "probability"
"""Key under predictions, for the places of probability maps."""
_FORMS_OF_RULE: Mapping[str, tuple[Source, ...]] = {
    "vertices": (),
    "multipolygons": (Source.GEOJSON,),
    "crowds": (Source.COCO_INSTANCES,),
    "score": (Source.GEOJSON, Source.ANNOTATION_STORE, Source.LABELS),
}
"""Keys that matter to some formats only; see `forms_of_rule`."""
SLIDE_BOUNDS = "slide-bounds"
"""The offset of outlines that count from the bounds of their slide."""
IGNORED = ""
"""The target of aliases of classes whose objects are left out on purpose."""

LEAST_SCALE = 0.001
"""Scales and micrometres per pixel are between this and its inverse."""
LARGEST_COORDINATE = 2.0**29
"""Largest coordinate of an offset, in px."""
_LONGEST_DESCRIPTION = 2**20
"""Size of the longest description in bytes."""
_MOST_DOTS = 200
"""Largest number of dots in a line."""

OF_ALL_TASKS: Mapping[str, schema.Reader] = {TASK_KEY: schema.anything, "name": schema.text}
"""The keys that descriptions of all tasks may have."""
OF_CLASSES: Mapping[str, schema.Reader] = dict.fromkeys(
    ("classes", "ambiguous", "masks", "aliases"), schema.anything
)
"""The keys that `scheme_in` reads."""
NO_IMAGES = "[files] must state where the images or annotations are: give image or reference"
_SCHEME = schema.table(
    {
        "classes": schema.table_of(schema.colour),
        "ambiguous": schema.table({"name": schema.text}),
        "masks": schema.table({"border": schema.colours, "background": schema.colours}),
        "aliases": schema.table_of(
            lambda value, place: value if value == IGNORED else schema.text(value, place)
        ),
    },
    needed=("classes",),
)

_LayoutT = TypeVar("_LayoutT")


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
        text = read_text(path, "a description", _LONGEST_DESCRIPTION)
        _check_dots(text)
        return tomllib.loads(text)
    except UnreadableFileError as error:
        raise CohortError(error.message, path=path) from error
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


def _layout(values: dict[str, Any]) -> Layout:
    found = _whole()(values, "")
    files = found["files"]
    layout = Layout(
        scheme=scheme_in(values),
        name=found.get("name"),
        patches=tuple(
            placed_region(region, place, f"{PATCHES_KEY}.{region}")
            for region, place in found.get(PATCHES_KEY, {}).items()
        ),
        patch_tables=files.pop(PATCHES_KEY, ()),
        **files,
    )
    if not layout.image and not layout.reference.all:
        raise CohortError(NO_IMAGES)
    _check_patches(layout)
    return layout


def _whole() -> schema.Reader:
    """Return the reader of a description of nuclei, with the formats that are known now."""
    files = {
        "image": schema.patterns(Pattern, {"region", "patient"}, _required_of_image),
        "reference": _side({"patient"}),
        "predictions": _side({"patient", "team"}),
        "annotation": _side({"patient"}),
        "patient": patient_pattern,
        "mpp": schema.number(LEAST_SCALE, 1 / LEAST_SCALE),
        PATCHES_KEY: schema.patterns(Pattern, set()),
    }
    places = dict.fromkeys(("slide", "x", "y", "scale"), schema.anything)
    return schema.table(
        {
            **OF_ALL_TASKS,
            **OF_CLASSES,
            "files": schema.table(files),
            PATCHES_KEY: schema.table_of(schema.table(places)),
        },
        needed=("files",),
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


def scheme_in(values: Mapping[str, Any]) -> ClassScheme:
    """Read the classes of a whole description, and how masks show them."""
    found = _SCHEME({key: values[key] for key in OF_CLASSES if key in values}, "")
    classes, masks, aliases = found["classes"], found.get("masks", {}), found.get("aliases", {})
    return ClassScheme(
        names=tuple(classes),
        colours=tuple(classes.values()),
        ambiguous=found.get("ambiguous", {}).get("name"),
        border=masks.get("border", MONUSAC_CLASSES.border),
        background=masks.get("background", MONUSAC_CLASSES.background),
        aliases={name: target for name, target in aliases.items() if target != IGNORED},
        ignored=tuple(name for name, target in aliases.items() if target == IGNORED),
    )


def _side(optional: set[str]) -> schema.Reader:
    """Return the reader of where the masks of one side lie, and how they are read.

    Parameters
    ----------
    optional
        The placeholders that the patterns of all formats may have.
    """
    is_of_teams = "team" in optional
    of_regions = schema.patterns(Pattern, optional, lambda _: {"region"})
    forms = [form for form in known_forms().values() if form.open is not None]
    keys = {form.name: _form_patterns(form, optional) for form in forms}
    keys[CLASSES_KEY] = of_regions
    if is_of_teams:
        keys[PROBABILITY_KEY] = of_regions
    keys |= {key: schema.by_team(reader, has_teams=is_of_teams) for key, reader in _RULES.items()}

    def read(value: Any, place: str) -> MaskPatterns:
        if isinstance(value, str | list):
            raise CohortError(
                f"{place} must name the format of the files, such as {place}.labels, .geojson or "
                f".imagescope (all are in docs/reference/cohorts.md), found {value!r} alone"
            )
        values, known = schema.table(keys)(value, place), known_forms()
        return MaskPatterns(
            {known[name].source: found for name, found in values.items() if name in known},
            values.get(CLASSES_KEY, ()),
            _rules(values, place),
            values.get(PROBABILITY_KEY, ()),
        )

    return read


def _rules(values: dict[str, Any], where: str) -> Mapping[str, OutlineRules]:
    """Return how outlines are read, by team (casefolded; "" for all others)."""
    rules: dict[str, dict[str, Any]] = defaultdict(dict)
    for key in _RULES:
        forms = forms_of_rule(key) if key in values and key in _FORMS_OF_RULE else ()
        if forms and not any(form in values for form in forms):
            raise CohortError(
                f"{where}.{key} states how {english_list(forms)} files are read, but {where} has "
                f"none; remove it, or add {where}.{forms[0]}"
            )
        for team, value in values.get(key, {}).items():
            rules[team] |= value if key == "offset" else {key: value}
    return {team: OutlineRules(**own) for team, own in rules.items()}


def forms_of_rule(key: str) -> tuple[Source, ...]:
    """Return the formats whose reading depends on a rule."""
    if key != "vertices":
        return _FORMS_OF_RULE[key]
    return tuple(form.source for form in known_forms().values() if form.has_conventions)


def _offset(value: Any, place: str) -> dict[str, Any]:
    """Read an offset; return the fields of the rules that it sets."""
    if value == SLIDE_BOUNDS:
        return {"from_bounds": True}
    match value:
        case [int() | float() as x, int() | float() as y] if (
            abs(x) <= LARGEST_COORDINATE and abs(y) <= LARGEST_COORDINATE
        ):
            return {"offset_xy": (float(x), float(y))}
    raise CohortError(
        f'{place} must be two numbers of px, such as [1024, 0], or "{SLIDE_BOUNDS}", found '
        f"{value!r}"
    )


def _form_patterns(form: Format, optional: set[str]) -> schema.Reader:
    """Return the reader of where files lie; outlines of slides have {slide} for {region}."""
    required, allowed = _placeholders(form)
    may_be_of_slides = form.outlines is not None and form.items is None

    def required_of(pattern: Pattern) -> set[str]:
        return {"slide"} if may_be_of_slides and "slide" in pattern.fields else required

    return schema.patterns(Pattern, optional | allowed, required_of)


def _placeholders(form: Format) -> tuple[set[str], set[str]]:
    """Return which placeholders the patterns of a form need, and which others they may have."""
    required: set[str] = set()
    allowed: set[str] = set()
    # The regions of a file that holds many have names of their own.
    (required if form.items is None else allowed).add("region")
    if form.per_class is not PerClass.NEVER:
        (required if form.per_class is PerClass.ALWAYS else allowed).add("class")
    return required, allowed


def _required_of_image(pattern: Pattern) -> set[str]:
    """Return the placeholders of images: a file that holds many, which arrays do, needs none."""
    return set() if pattern.text.casefold().endswith(ARRAY_ENDING) else {"region"}


def patient_pattern(value: Any, place: str) -> PatientPattern:
    """Read how to find the patient in a region's name."""
    return PatientPattern(schema.text(value, place))


_RULES: Mapping[str, schema.Reader] = {
    "vertices": schema.word(Vertices),
    "multipolygons": schema.word(Multipolygons),
    "crowds": schema.word(Crowds),
    "score": schema.text,
    "axes": schema.word(Axes),
    "objects": schema.word(MaskObjects),
    "scale": schema.number(LEAST_SCALE, 1 / LEAST_SCALE),
    "offset": _offset,
}
"""How the files of a side are read, and where their pixels lie: one value, or one per team."""
