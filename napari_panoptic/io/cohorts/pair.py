"""Label files of one image become a cohort: an annotation and predictions, without a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from napari_panoptic.common.errors import PanopticError, UnreadableFileError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.text import composed, counted, english_list
from napari_panoptic.io.formats.labels.label_images import area_beside, sidecars_beside
from napari_panoptic.io.formats.one_file import (
    format_of,
    stated_classes,
    stem_of,
)
from napari_panoptic.io.formats.registry import form_of, is_mask
from napari_panoptic.io.images.slides import probe_image
from napari_panoptic.values.cohort import (
    MONUSAC_CLASSES,
    ONLY_CLASS,
    ClassScheme,
    Cohort,
    MaskFiles,
    Region,
    Rgb,
    Source,
    Team,
)

PAIR = "pair"
"""Name of the only region of such a cohort, and of its patient."""

REFERENCE_WORDS = (
    *("annotation", "annot", "ground", "truth", "gt", "reference", "manual", "expert"),
    *("consensus", "label", "mask"),
)
"""Words in the names of files and folders that point to an annotation, the clearest first."""
_COLOURS: tuple[Rgb, ...] = (
    *MONUSAC_CLASSES.colours,
    *((255, 128, 0), (128, 0, 255), (0, 255, 255), (255, 0, 255)),
)


def pair_cohort(
    reference: Path,
    predictions: Sequence[Path],
    *,
    image: Path | None = None,
    classes: Sequence[str] | None = None,
    class_table: Path | None = None,
) -> Cohort:
    """Make a cohort of one region from the files of one image.

    Parameters
    ----------
    reference
        The annotation.
    predictions
        One file per team; teams are named after their files.
    image
        The image, or None. Outlines need it, unless a label image gives the size.
    classes
        Names of the classes. By default those that the files state, if all of
        them do; else every object has the one class `ONLY_CLASS`.
    class_table
        A table (columns id and class) for label images without one of their own.

    Returns
    -------
    Cohort
        With the region and the patient `PAIR`.

    Raises
    ------
    PanopticError
        For a file that is missing or of no known format, two predictions that
        are the same file, or outlines of an image of unknown size.
    """
    if len({path.resolve() for path in predictions}) < len(predictions):
        raise PanopticError("the same prediction was given twice; give each file once")
    sides: list[_Side] = []
    for path in (reference, *predictions):
        # A list of results names images by the numbers that the annotation gives them.
        names = [image.stem] if image is not None else []
        names += [side.item for side in sides if side.item is not None]
        sides.append(_Side.of(path, class_table, names))
    scheme, findings = _scheme(sides, classes)
    if image is None and not any(is_mask(side.files(scheme)) for side in sides):
        raise PanopticError(
            "outlines do not contain the size of the image: give the image (--image), or a label "
            "image for one of the sides",
            path=reference,
        )
    names = _team_names(predictions)
    return Cohort(
        name=f"{stem_of(reference)} / {english_list(names)}",
        root=reference,
        scheme=scheme,
        regions=(Region(PAIR, PAIR, image, sides[0].files(scheme)),),
        teams=tuple(Team(name) for name in names),
        predictions={
            (name, PAIR): {side.source: side.files(scheme)}
            for name, side in zip(names, sides[1:], strict=True)
        },
        findings=tuple(findings),
    )


def pair_of_files(paths: Sequence[Path]) -> Cohort:
    """Make a cohort of files in any order: an annotation, predictions, and perhaps the image.

    The annotation is the file whose name says so (`REFERENCE_WORDS`), else the first.

    Raises
    ------
    PanopticError
        As :func:`pair_cohort`, and where fewer than two files hold objects.
    """
    objects: list[Path] = []
    images: list[Path] = []
    for path in paths:
        (objects if _holds_objects(path) else images).append(path)
    if len(objects) < 2 or len(images) > 1:
        raise PanopticError(
            "expected an annotation and at least one prediction (label images or outlines), and "
            f"at most one image; found {counted(len(objects), 'file')} with objects and "
            f"{counted(len(images), 'image')}"
        )
    reference = min(objects, key=lambda path: _reference_rank(path.name))
    predictions = [path for path in objects if path is not reference]
    return pair_cohort(reference, predictions, image=images[0] if images else None)


def _holds_objects(path: Path) -> bool:
    """Return whether a file has objects; False for an image.

    Raises
    ------
    UnreadableFileError
        For a file that is neither.
    """
    try:
        format_of(path)
    except UnreadableFileError as error:
        try:
            probe_image(path)
        except PanopticError:
            raise error from None
        return False
    return True


def _reference_rank(name: str) -> int:
    words = (rank for rank, word in enumerate(REFERENCE_WORDS) if word in name.casefold())
    return next(words, len(REFERENCE_WORDS))


@dataclass(frozen=True)
class _Side:
    """One file with objects, its format, and the classes that it states."""

    path: Path
    source: Source
    tables: tuple[Path, ...]
    classes: tuple[str, ...]
    item: str | None

    @classmethod
    def of(cls, path: Path, class_table: Path | None, image_names: Sequence[str]) -> _Side:
        source = format_of(path)
        tables: tuple[Path, ...] = ()
        if source == Source.LABELS:
            beside = tuple(sidecars_beside(path))
            tables = beside[:1] or (() if class_table is None else (class_table,))
        item = _item_of(path, source, image_names)
        classes = stated_classes(path, source, tables, item)
        has_numbers = any(name.isdigit() for name in classes)
        return cls(path, source, tables, () if has_numbers else classes, item)

    def files(self, scheme: ClassScheme) -> MaskFiles:
        """Return the files of this side, as readers take them."""
        paths: list[Path] = [self.path, *self.tables]
        if self.source == Source.LABELS and (area := area_beside(self.path)) is not None:
            paths.append(area)
        key = scheme.names[0] if self.source == Source.SUBMISSION else ""
        return MaskFiles(self.source, {key: tuple(paths)}, self.item)


def _item_of(path: Path, source: Source, image_names: Sequence[str]) -> str | None:
    """Return which of the images of a file is meant; None if it has only one."""
    form = form_of(source)
    items = [] if form is None or form.items is None else list(form.items(path))
    if len(items) < 2:
        return None
    keys = {composed(item.name).casefold(): item.key for item in items}
    for name in image_names:
        if (key := keys.get(composed(name).casefold())) is not None:
            return key
    raise UnreadableFileError(
        f"expected the objects of one image, or of several of which one is called like the file "
        f"that --image names; found {len(items)} images: {english_list([i.name for i in items])}",
        path=path,
    )


def _scheme(
    sides: Sequence[_Side], classes: Sequence[str] | None
) -> tuple[ClassScheme, list[Finding]]:
    """Decide on the classes; see `pair_cohort`."""
    if classes:
        return scheme_as_written(classes), []
    if all(side.classes for side in sides):
        return scheme_of([name for side in sides for name in side.classes]), []
    findings = [
        Finding(
            FindingKind.FALLBACK,
            f"{side.path.name} states the classes {english_list(side.classes)}, and not every "
            "other file states classes: all objects were taken for one class. Give --classes, or "
            "a table of classes for each label image",
            path=side.path,
        )
        for side in sides
        if side.classes
    ]
    return ClassScheme((ONLY_CLASS,), _COLOURS[:1], default=ONLY_CLASS), findings


def scheme_of(names: Sequence[str]) -> ClassScheme:
    """Make a scheme of class names; those of MoNuSAC are in its order, with all four of them."""
    if {name.casefold() for name in names} <= {n.casefold() for n in MONUSAC_CLASSES.names}:
        return MONUSAC_CLASSES
    return scheme_as_written(names)


def scheme_as_written(names: Sequence[str]) -> ClassScheme:
    """Make a scheme of class names in their order; some may differ in case only."""
    spellings: dict[str, str] = {}
    for name in names:
        spellings.setdefault(name.casefold(), name)
    unique = tuple(spellings.values())
    # Colour-coded masks need MoNuSAC's colours, which may belong to other classes here.
    usual = dict(
        zip(map(str.casefold, MONUSAC_CLASSES.names), MONUSAC_CLASSES.colours, strict=True)
    )
    if all(name in usual for name in spellings):
        return ClassScheme(unique, tuple(usual[name] for name in spellings))
    return ClassScheme(unique, tuple(_COLOURS[n % len(_COLOURS)] for n in range(len(unique))))


def _team_names(paths: Sequence[Path]) -> list[str]:
    """Name teams after their files, or after their folders where files share a name."""
    places = [(stem_of(path), *path.absolute().parent.parts[::-1]) for path in paths]
    for level in range(min(len(place) for place in places)):
        names = [place[level] for place in places]
        if len(set(names)) == len(names):
            return names
    # No single folder distinguishes them: use the paths.
    return [str(path) for path in paths]
