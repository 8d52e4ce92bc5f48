"""All features of objects: those of this package by name, and those that users add."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import LabelError, PanopticError, SettingsError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.plugins import Plugins
from napari_panoptic.common.text import english_list
from napari_panoptic.features import given, shape, stain, surroundings
from napari_panoptic.features.feature import Feature, FeatureText
from napari_panoptic.features.region_side import RegionSide
from napari_panoptic.features.surroundings import APART, TOUCHING
from napari_panoptic.io.tables.covariates import KEY_COLUMNS

ENTRY_POINTS = "napari_panoptic.covariates"
"""The group of entry points by which plugins add covariates: each names a `CovariateFunction`."""
OUTCOME_COLUMNS = (*KEY_COLUMNS, "status", "cause")
"""The columns of objects beside their features."""

Columns = Mapping[str, NDArray[Any]]
"""Feature -> (n,): floats, NaN if undefined; or words, empty if undefined."""
CovariateFunction = Callable[[RegionSide], Columns]
"""Returns covariates of the objects of a region, in the order of the label image."""

_FAMILIES = (given, shape, stain, surroundings)
FEATURES: Mapping[str, Feature] = {own.key: own for part in _FAMILIES for own in part.FEATURES}
"""Name -> feature of this package, in the order in which conditions are read."""
USUAL = tuple(key for key, own in FEATURES.items() if own.is_usual)
"""Those that are measured unless others are chosen."""


def _with_unit(key: str, unit: str) -> str:
    return f"{key.removesuffix('_px').removesuffix('_um')}_{unit}"


_IN_UM = frozenset(_with_unit(key, "um") for key, own in FEATURES.items() if own.px_power)


def text_of(name: str) -> FeatureText:
    """Return the words for a feature, in px or µm; those that users add go by their names."""
    known = FEATURES.get(name) or (FEATURES[_with_unit(name, "px")] if name in _IN_UM else None)
    return known or FeatureText(header=name.replace("_", " "))


def in_um(name: str, values: Any, mpp: Any) -> tuple[str, Any]:
    """Return a feature of this package in µm; others are unchanged, whatever their names end with.

    Parameters
    ----------
    name, values
        The feature.
    mpp
        Micrometres per pixel of each object.
    """
    power = FEATURES[name].px_power if name in FEATURES else 0
    return (_with_unit(name, "um"), values * mpp**power) if power else (name, values)


def chosen_features(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of features of this package in their order, each once.

    Raises
    ------
    SettingsError
        For other names, and without any.
    """
    wanted = set(names)
    if unknown := sorted(wanted - set(FEATURES)) or ([] if wanted else [""]):
        raise SettingsError(
            f"expected features among {english_list(list(FEATURES), limit=99)}, found "
            f"{english_list([repr(name) for name in unknown])}; choose others"
        )
    return tuple(key for key in FEATURES if key in wanted)


def measured(side: RegionSide, names: Iterable[str] = USUAL) -> dict[str, NDArray[Any]]:
    """Return features of this package, which do not depend on the team.

    Numbers are undefined on a side that does not have the feature.
    """
    return {
        name: FEATURES[name].measure(side)
        if side.outcomes.side in FEATURES[name].sides
        else np.full(len(side), np.nan)
        for name in names
    }


# --- features that users add ------------------------------------------------------------------


_FUNCTIONS: dict[str, CovariateFunction] = {}
"""The functions of plugins, by name."""


def _add_plugin(name: str, function: object) -> None:
    if not callable(function):
        raise PanopticError(f"expected a function, found a {type(function).__name__}")
    _FUNCTIONS.setdefault(name, function)


_PLUGINS = Plugins(ENTRY_POINTS, "covariates", _add_plugin)
_ONE_CALL = (
    threading.Lock()
)  # regions are read in several threads; functions need not be thread-safe


def known_functions() -> Mapping[str, CovariateFunction]:
    """Return the functions that plugins added, by name."""
    with _PLUGINS.lock:
        _PLUGINS.load()
        return dict(_FUNCTIONS)


def plugin_findings() -> tuple[Finding, ...]:
    """Return findings about plugins whose covariates cannot be used."""
    return _PLUGINS.load()


def region_features(
    side: RegionSide,
    functions: Mapping[str, CovariateFunction] | None = None,
    built_in: Columns | None = None,
) -> dict[str, NDArray[Any]]:
    """Return all features of the objects of a region.

    Parameters
    ----------
    side
        The objects.
    functions
        Those that compute further covariates, by name; None for `known_functions`.
    built_in
        Those of this package; None for the usual ones.

    Returns
    -------
    dict
        Feature -> (n,): float64, NaN if undefined; or words, empty if undefined.

    Raises
    ------
    LabelError
        If a function returns a covariate that is there already or has the name of one of
        `OUTCOME_COLUMNS`, or not one value per object.
    """
    found = dict(measured(side) if built_in is None else built_in)
    for name, function in (known_functions() if functions is None else functions).items():
        with _ONE_CALL:
            columns = function(side)
        for covariate, values in columns.items():
            column = as_covariate(values)
            is_taken = covariate in found or covariate in (*OUTCOME_COLUMNS, *_IN_UM)
            if is_taken or column.shape != (len(side),):
                problem = (
                    "which is there already; rename it"
                    if is_taken
                    else f"expected {len(side)} values, found the shape {column.shape}; return "
                    f"one per object"
                )
                raise LabelError(
                    f"the covariates '{name}' have '{covariate}': {problem}", region=side.region
                )
            found[covariate] = column
    return found


def as_covariate(values: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """Return values as float64, or as words where one of them is no number.

    Infinite numbers become NaN. Words are stripped; empty ones are undefined.
    """
    column = np.asarray(values)
    if column.dtype.kind in "iuf":
        numbers = column.astype(np.float64)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    if column.dtype.kind == "b":
        return np.where(column, TOUCHING, APART).astype(object)
    words = [str(value).strip() for value in column.tolist()]
    try:
        return as_covariate(np.array([float(word) if word else np.nan for word in words]))
    except ValueError:
        return np.array(words, dtype=object)
