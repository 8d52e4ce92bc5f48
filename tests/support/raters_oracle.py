"""The raters' figures once more: voxel by voxel, from the definitions, in the plainest way."""

from fractions import Fraction
from itertools import product


def reaches(value, level, at_level):
    return value >= level if at_level == "at-least" else value > level


def reference_of(masks, left_out=None):
    """Voxel -> the share of raters who marked it, as a fraction."""
    kept = [mask for number, mask in enumerate(masks) if number != left_out]
    shape = kept[0].shape
    return {
        voxel: Fraction(sum(int(mask[voxel]) for mask in kept), len(kept))
        for voxel in product(*map(range, shape))
    }


def dice(first, second, both_empty="one"):
    if not first and not second:
        return 1.0 if both_empty == "one" else None
    return 2 * len(first & second) / (len(first) + len(second))


def level_sets(reference, probabilities, level, at_level):
    """The voxels that reach a level: fractions exactly, floats in their own precision."""
    exact, rounded = Fraction(str(level)), probabilities.dtype.type(level)
    inside = {voxel for voxel, share in reference.items() if reaches(share, exact, at_level)}
    predicted = {v for v in reference if reaches(probabilities[v], rounded, at_level)}
    return inside, predicted


def dice_at_levels(reference, probabilities, settings):
    return [
        dice(*level_sets(reference, probabilities, level, settings.at_level), settings.both_empty)
        for level in settings.levels
    ]


def average(values):
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def brier(masks, probabilities):
    squares = [
        (float(probabilities[voxel]) - float(mask[voxel])) ** 2
        for mask in masks
        for voxel in product(*map(range, mask.shape))
    ]
    return sum(squares) / len(squares)
