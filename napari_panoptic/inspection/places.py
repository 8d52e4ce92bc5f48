"""Doubts about objects: their places and sizes, the vertices of outlines, pieces of masks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from napari_panoptic.common.text import counted
from napari_panoptic.inspection.looking import SampledRegion, SampledSide, Shape, sides_of
from napari_panoptic.inspection.moves import AT_BOUNDS, Move, Places, look_traced, whole_if_whole
from napari_panoptic.inspection.values import REFERENCE, Doubt, Fix, InspectedSide
from napari_panoptic.io.cohorts.description import SLIDE_BOUNDS, forms_of_rule
from napari_panoptic.io.formats.labels.pieces import ids_far_apart
from napari_panoptic.io.formats.placing import in_pieces
from napari_panoptic.io.formats.polygons.model import PolygonFile, Polygons
from napari_panoptic.io.formats.polygons.outline_rules import LEAST_SHARE, objects_far_apart
from napari_panoptic.kernels.fill import bounds
from napari_panoptic.nuclei.regions.doubts import (
    LEAST_APART,
    LEAST_VAST_PX,
    LITTLE,
    VAST_SHARE,
    vast_objects,
)
from napari_panoptic.values.cohort import Axes, Crowds, MaskObjects, Multipolygons, Vertices
from napari_panoptic.values.labels import size_text

MOST_TIMES = 32
"""The largest ratio of the size of an image and a mask that is taken for a scale."""
GOOD = 0.4
"""Dice coefficient of the areas of both sides at which objects can be in place."""
GAIN, GAIN_AFTER = 0.1, 0.03
"""The least increase for which another place is proposed, and where settings place objects already:
before, vertices at the wrong side of their pixels explain less."""
LEFT = 0.6
"""The share of what lacks to 1 that another place may still lack."""
TRIED = "mirroring, turning, swapping x and y, another scale, an offset and other regions"
MOSTLY = 0.5
LEAST_HALVES = 16
"""With fewer vertices between pixels, a file may as well hold drawn outlines."""
LEAST_PIECES = 10
"""With fewer pieces in all, objects may as well be cut by chance."""
MANY_TIMES = 4
"""Ratio of pieces to numbers from which numbers look like classes."""

_Pair = tuple[SampledSide, SampledSide]
_VERTICES = (
    (Vertices.PIXEL_CENTRES, "They run through pixel centres"),
    (Vertices.PIXEL_EDGES, "They are pixel edges"),
)
_PARTS = (
    (Multipolygons.SPLIT, "Each part is an object"),
    (Multipolygons.ONE_OBJECT, "They are one object"),
)
_CROWDS = (
    (Crowds.OBJECTS, "Each is an object"),
    (Crowds.EXCLUDED, "They are excluded areas"),
)
_OBJECTS = (
    (MaskObjects.PIECES, "Each piece is an object"),
    (MaskObjects.NUMBERS, "Each number is an object"),
)


def place_doubts(
    regions: Sequence[SampledRegion], reference: InspectedSide, teams: Sequence[InspectedSide]
) -> Iterator[Doubt]:
    """Report objects whose places differ from those of the other sides."""
    annotated = sides_of(regions, REFERENCE)
    yield from _size_doubt(reference, annotated)
    found: dict[str, Doubt] = {}
    for team in teams:
        sides = sides_of(regions, team.name)
        sized = list(_size_doubt(team, sides))
        yield from sized
        doubt = None if sized else _place_doubt(team, _pairs(regions, None, team.name), sides)
        if doubt is not None:
            found[team.name] = doubt
    own = _doubt_of_reference(regions, reference, teams, annotated, found)
    if own is not None:
        yield own
    else:
        yield from found.values()


def side_doubts(target: InspectedSide, sides: Sequence[SampledSide]) -> Iterator[Doubt]:
    """Report objects of one side that look misread, whatever the other sides have."""
    for key, message_of, choices in _KINDS:
        if message := message_of(target, sides):
            fixes = tuple(target.fix(key, str(word), label) for word, label in choices)
            yield Doubt(f"{key}:{target.name}", message, fixes)


def _vertex_message(target: InspectedSide, sides: Sequence[SampledSide]) -> str:
    """Describe outlines that run through the centres of pixels and are read as edges."""
    open_ = [file.polygons for file in _undecided(sides, "vertices") if len(file.polygons)]
    traced = sum(look_traced(polygons) for polygons in open_)
    half = sum(_look_between(polygons) for polygons in open_)
    if not traced and not half:
        return ""
    found, how = (traced, "whole numbers and steps of 45 degrees, as OpenCV traces objects")
    if half > traced:
        found, how = (half, "half numbers, as scikit-image traces objects")
    some = "" if found == len(open_) else "; the others are traced differently"
    return (
        f"Outlines of {target.in_words} run through the centres of pixels in {found} of "
        f"{len(open_)} files that were read ({how}){some}. They are read as the edges of pixels, "
        "so that every object is shifted or lacks a rim."
    )


def _multipolygon_message(target: InspectedSide, sides: Sequence[SampledSide]) -> str:
    """Describe objects of several parts that lie far apart."""
    files = _undecided(sides, "multipolygons")
    count = sum(len(objects_far_apart(file.polygons)[0]) for file in files)
    if not count:
        return ""
    return (
        f"{counted(count, 'object')} of {target.in_words} with several parts that lie far apart: a "
        "MultiPolygon is read as one object, and CellViT writes one for all nuclei of a class."
    )


def _crowd_message(target: InspectedSide, sides: Sequence[SampledSide]) -> str:
    """Describe crowds of COCO instances, which are excluded unless the cohort has a rule."""
    count = sum(file.crowds for file in _undecided(sides, "crowds"))
    if not count:
        return ""
    return (
        f"{counted(count, 'crowd')} (iscrowd) among the objects of {target.in_words}, excluded "
        f"from scoring; CVAT exports every mask as one."
    )


def _undecided(sides: Sequence[SampledSide], rule: str) -> list[PolygonFile]:
    """Return the outlines that a rule concerns and that the cohort does not state it for."""
    return [
        side.outlines
        for side in sides
        if side.outlines is not None
        and side.files.source in forms_of_rule(rule)
        and getattr(side.files.rules, rule) is None
    ]


def _piece_message(target: InspectedSide, sides: Sequence[SampledSide]) -> str:
    """Describe masks whose numbers have too many pieces for numbers of objects, or far apart."""
    open_ = [side for side in sides if side.files.rules.objects is None]
    numbers = sum(side.counts().total() for side in open_)
    masks = [side.numbers for side in open_ if side.numbers is not None]
    pieces = sum(len(in_pieces(each).labels) for each in masks)
    if pieces >= max(LEAST_PIECES, MANY_TIMES * numbers) and numbers:
        return (
            f"Masks of {target.in_words} have {numbers} numbers in {pieces} separate pieces, as if "
            "all nuclei of a class had the same number. Touching nuclei in such masks remain "
            "one object."
        )
    apart = sum(len(ids_far_apart(each.labels)) for each in masks)
    if not apart:
        return ""
    return (
        f"{counted(apart, 'object')} of {target.in_words} with pieces that lie far apart, as where "
        "numbers wrapped or were cut off at 255 (8 bits) or 65535 (16 bits). Save the masks "
        "with more bits, or take each piece for an object."
    )


def _vast_message(target: InspectedSide, sides: Sequence[SampledSide]) -> str:
    """Describe objects that cover more of their region than a nucleus does."""
    shapes = [vast_objects(side.masks.labels) for side in sides if side.masks is not None]
    count = sum(len(ids) > 0 and math.prod(shape) >= LEAST_VAST_PX for ids, shape in shapes)
    if not count:
        return ""
    return (
        f"An object of {target.in_words} covers more than {VAST_SHARE:.0%} of its region in "
        f"{count} of {len(shapes)} regions that were read: masks may be inverted (0 for "
        f"objects; save 0 for the background), or an area is outlined (remove it)."
    )


_Message = Callable[[InspectedSide, Sequence[SampledSide]], str]
_KINDS: tuple[tuple[str, _Message, tuple[tuple[str, str], ...]], ...] = (
    ("vertices", _vertex_message, _VERTICES),
    ("multipolygons", _multipolygon_message, _PARTS),
    ("crowds", _crowd_message, _CROWDS),
    ("objects", _piece_message, _OBJECTS),
    ("vast", _vast_message, ()),
)
"""Kinds of doubts about one side: the name, which is that of the rule that removes it, the message
(empty without a doubt), and the values of the rule with their labels, the best first."""


def _doubt_of_reference(
    regions: Sequence[SampledRegion],
    reference: InspectedSide,
    teams: Sequence[InspectedSide],
    annotated: Sequence[SampledSide],
    found: dict[str, Doubt],
) -> Doubt | None:
    """Return a doubt about the annotation if the teams agree without it, or it lies outside."""
    names = [team.name for team in teams]
    if found and len(names) > 1 and set(names) == set(found):
        is_wrong = Places(_pairs(regions, names[0], names[1])).agreement() >= GOOD
    else:
        is_wrong = _outside_share(annotated) > MOSTLY
    if not names:
        return None
    pairs = [(prediction, own) for own, prediction in _pairs(regions, None, names[0])]
    places = Places(pairs)
    if not is_wrong and places.have_bounds:
        is_wrong = _is_better(places.agreement(AT_BOUNDS), places.agreement())
    if not is_wrong:
        return None
    return _place_doubt(reference, pairs, annotated)


def _pairs(regions: Sequence[SampledRegion], first: str | None, second: str) -> list[_Pair]:
    """Return two sides of each region that has both."""
    pairs = []
    for region in regions:
        one = region.reference if first is None else region.predictions.get(first)
        other = region.predictions.get(second)
        if one is not None and other is not None and one.masks is not None:
            pairs.append((one, other))
    return pairs


@dataclass(frozen=True, eq=False)
class _Compared:
    """The second side of pairs, whose objects may lie elsewhere than those of the first."""

    target: InspectedSide
    pairs: Sequence[_Pair]
    #: All that was read of the side, also without a partner.
    sides: Sequence[SampledSide]

    @cached_property
    def places(self) -> Places:
        return Places(self.pairs)

    @cached_property
    def present(self) -> float:
        """The Dice coefficient of the areas of both sides."""
        return self.places.agreement()

    @cached_property
    def is_outside(self) -> bool:
        return _outside_share(self.sides) > MOSTLY

    @cached_property
    def has_many(self) -> bool:
        """Whether both sides have enough objects to compare their places."""
        return all(sum(pair[n].n_objects for pair in self.pairs) >= LEAST_APART for n in (0, 1))

    @property
    def outside(self) -> str:
        share = _outside_share(self.sides)
        return f"{share:.0%} of the objects of {self.target.in_words} lie outside the image"

    @property
    def overlap(self) -> str:
        return (
            f"Objects of {self.target.in_words} overlap the {self.target.other} with a Dice of "
            f"{self.present:.2f}"
        )

    def doubt(self, name: str, message: str, fixes: tuple[Fix, ...] = ()) -> Doubt:
        return Doubt(f"{name}:{self.target.name}", message, fixes)


def _other_magnification(own: _Compared) -> Doubt | None:
    """Report outlines that state another magnification than the image."""
    stated = Counter(side.scale_by_magnification for side in own.sides)
    scale = next((s for s in stated if s not in (None, 1.0)), None)
    if scale is None:
        return None
    message = (
        f"Outlines of {own.target.in_words} state another magnification than the image: they need "
        f"{whole_if_whole(scale):g} times the px."
    )
    return own.doubt("scale", message, (_fix(own.target, "scale", whole_if_whole(scale)),))


def _better_place(own: _Compared) -> Doubt | None:
    """Report objects that overlap much more at another place."""
    is_placed = any(side.files.rules.is_placed for side in own.sides)
    dice, move = own.places.best()
    if not own.has_many or not _is_better(dice, own.present, GAIN_AFTER if is_placed else GAIN):
        return None
    fixes = _fixes(own.target, move, own.sides)
    remedy = "" if fixes else ". Export them again in the orientation of the image"
    if move.by_rows:
        remedy = ". Export them again column by column, as pycocotools does"
    now = own.outside if own.is_outside else own.overlap
    name = str(fixes[0].settings[0][0][-1]) if fixes else "overlap"
    return own.doubt(name, f"{now}; {move.words} they have {dice:.2f}{remedy}.", fixes)


def _outside_image(own: _Compared) -> Doubt | None:
    """Report objects outside the image that no place brings in."""
    if not own.is_outside:
        return None
    message = (
        f"{own.outside}, and swapping the axes, rescaling or one offset for all regions does not "
        "bring them in. Export outlines in px of the image of their region; if they are in px "
        "of a slide, state where each region lies in it (patches in cohort.toml)."
    )
    return own.doubt("outside", message)


def _little_overlap(own: _Compared) -> Doubt | None:
    """Report objects that overlap little at every place that was tried."""
    if not own.has_many or own.present >= LITTLE:
        return None
    others, example = own.places.other_regions()
    if _is_better(others, own.present):
        message = f"with files of other regions they have {others:.2f}: {example}. "
        return own.doubt("overlap", f"{own.overlap}; {message}Rename the files as their regions.")
    message = f"{TRIED} did not help. Look at the picture whether these are the right files."
    return own.doubt("overlap", f"{own.overlap}, and {message}")


_PLACE_KINDS = (_other_magnification, _better_place, _outside_image, _little_overlap)
"""Kinds of doubts about the places of one side: the first that applies is reported."""


def _place_doubt(
    target: InspectedSide, pairs: Sequence[_Pair], sides: Sequence[SampledSide]
) -> Doubt | None:
    """Report that the second side of pairs lies elsewhere than the first."""
    compared = _Compared(target, pairs, sides)
    return next((doubt for kind in _PLACE_KINDS if (doubt := kind(compared))), None)


def _is_better(there: float, present: float, least: float = GAIN) -> bool:
    """Return whether objects fit so much better at another place that it is proposed."""
    gain = there - present
    return there >= GOOD and gain >= least and 1 - there <= LEFT * (1 - present)


def _fixes(target: InspectedSide, move: Move, sides: Sequence[SampledSide]) -> tuple[Fix, ...]:
    """Return the setting of a place, if there is one."""
    own = [_fix(target, key, value) for key, value in move.settings(sides[0].files.rules).items()]
    if not own:
        return ()
    name, label = (" and ".join(getattr(fix, what) for fix in own) for what in ("name", "label"))
    return (Fix(name, label, tuple(setting for fix in own for setting in fix.settings)),)


def _fix(target: InspectedSide, key: str, value: Any) -> Fix:
    if key == "axes":
        label = "Swap x and y" if value == Axes.SWAPPED else "Do not swap x and y"
        return target.fix(key, value, label)
    if key == "scale":
        return target.fix(key, value, f"Scale by {value:g}")
    if value == SLIDE_BOUNDS:
        return target.fix(key, value, "Count from the bounds of each slide")
    x, y = value
    return target.fix(key, value, f"Move by {x} px (x) and {y} px (y)")


def _outside_share(sides: Sequence[SampledSide]) -> float:
    """Return the share of outlines whose middle is not in the image."""
    outside = total = 0
    for side in sides:
        if side.polygons is not None and side.shape is not None and len(side.polygons):
            boxes = bounds(side.polygons.flat)
            middle = (boxes[:, :2] + boxes[:, 2:]) / 2
            outside += int(((middle < 0) | (middle >= side.shape)).any(axis=1).sum())
            total += len(boxes)
    return outside / total if total else 0.0


def _size_doubt(target: InspectedSide, sides: Sequence[SampledSide]) -> Iterator[Doubt]:
    """Report masks, and outlines that state one, of another size than the image."""
    known = [
        (side.own_shape, side.image.shape)
        for side in sides
        if side.own_shape is not None and side.image is not None
    ]
    odd = [(own, shape) for own, shape in known if own != shape]
    if not odd:
        return
    own, shape = odd[0]
    fixes: tuple[Fix, ...] = ()
    if len(odd) == len(known):
        scales = {_scale_of(*each) for each in odd}
        if all(own == shape[::-1] for own, shape in odd):
            fixes = (_fix(target, "axes", str(Axes.SWAPPED)),)
        elif len(scales) == 1 and (scale := scales.pop()) is not None:
            fixes = (_fix(target, "scale", whole_if_whole(scale)),)
    remedy = "" if fixes else " Save objects in px of the image of their region."
    yield Doubt(
        f"size:{target.name}",
        f"{len(odd)} of {len(known)} files of {target.in_words} have another size than the image, "
        f"such as {size_text(own)} instead of {size_text(shape)}.{remedy}",
        fixes,
    )


def _scale_of(own: Shape, shape: Shape) -> float | None:
    """Return by which whole number masks were enlarged or reduced; None for anything else."""
    large, small = (own, shape) if own[0] > shape[0] else (shape, own)
    times = round(large[0] / small[0])
    fits = all(abs(b * times - a) < times for a, b in zip(large, small, strict=True))
    if not fits or not 2 <= times <= MOST_TIMES:
        return None
    return 1 / times if large is own else float(times)


def _look_between(polygons: Polygons) -> bool:
    """Whether each vertex lies in the middle between two neighbouring pixels."""
    twice = 2 * polygons.vertices_xy
    is_half = np.rint(twice) % 2 == 1
    between = (twice == np.rint(twice)).all(axis=1) & (is_half.sum(axis=1) == 1)
    return len(between) >= LEAST_HALVES and between.mean() >= LEAST_SHARE
