"""Conventions of published evaluation codes: the choices behind a figure, and their names.

Eight choices over the overlaps of a region's objects tell the figures of the field's evaluation
codes apart; docs/reference/conventions.md tells where each named convention was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import NamedTuple

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.text import english_list


class ObjectScope(StrEnum):
    """Which objects meet."""

    TOGETHER = "together"  # all nuclei, whatever their class
    BY_CLASS = "by-class"  # those of one class at a time
    PIECES = "pieces"  # as together, each object split into its 8-connected pieces
    CLASS_MASKS = "class-masks"  # by class, each on its own mask, whatever other classes cover
    NUCEVAL = "together, border of nuceval"  # as together; an uncertain border has its element


class Pairs(StrEnum):
    """What is a pair."""

    ABOVE_HALF = "iou>0.5"
    HALF = "iou>=0.5"  # one to one: most pairs, then the largest summed IoU
    BEST_IOU = "best-iou"  # the best of each annotated object; a prediction may serve twice
    ONE_TO_ONE = "one-to-one"  # the largest summed IoU, any overlap
    LARGEST_OVERLAP = "largest-overlap"  # of each annotated object; all of equal ones count
    ANY_OVERLAP = "any-overlap"  # every two objects that share a pixel
    PIXELS = "pixels"  # none: pixels of any object against pixels of any object
    CENTROIDS = "centroids"  # least total distance of all centroids, then at most 12 px
    COUNTS = "counts"  # none: numbers of objects
    ABOVE_HALF_BY_ID = "iou>0.5, FP by id"  # the challenge's error: see `Mistake`


class AddedOver(StrEnum):
    """Over what counts are added up before a quotient is computed."""

    REGION = "region"
    PATIENT = "patient"
    SET = "set"


class MeanOver(StrEnum):
    """What the quotients are averaged over then; groups without a value are left out."""

    NOTHING = ""  # one quotient of the whole set
    REGIONS = "regions"
    PATIENTS = "patients"  # of sums over a patient; of regions: regions of a patient, then patients
    TISSUES = "tissues"  # regions of a tissue, then tissues
    FOLDS = "folds, tissues"  # regions of a fold of a tissue, then folds, then tissues
    NUCLEI = "regions by nuclei"  # regions, each weighted by its annotated nuclei that count


class ClassMean(StrEnum):
    """When classes are averaged."""

    NONE = ""  # one class, or classes are not distinguished
    FIRST = "first"  # inside each region or patient
    LAST = "last"  # each class over the set, then all classes


class Nothing(StrEnum):
    """What a region, or a class in it, counts where there is nothing; else 0 / 0 is 0."""

    NO_REFERENCE = "out if no reference"  # left out; also predictions there
    BOTH_EMPTY = "out if both empty"
    EITHER_EMPTY = "out if either empty"
    ZERO = "0"
    ONE = "1"
    ERROR = "error"  # for 0 / 0; the set has no figure then
    ERROR_PREDICTION = "error if no prediction"


class Constant(StrEnum):
    """What is added to denominators."""

    NONE = "none"
    SQ = "1e-6 for SQ"
    BOTH = "1e-6 for SQ and DQ"
    EVERY = "1e-8"
    LARGER = "1e-6"


class Formula(StrEnum):
    """The quotient that is computed of sums."""

    PQ = "pq"
    SQ = "sq"
    DQ = "dq"
    PRECISION = "precision"
    RECALL = "recall"
    ACCURACY = "accuracy"
    TRUE_SCORE = "mean-true-score"  # summed IoU by annotated objects
    SHARED = "shared"  # shared pixels by those of the union: AJI, AJI+
    DICE = "dice"
    TYPE_F1 = "type-f1"
    TYPE_ACCURACY = "type-accuracy"
    R2 = "r2"


class Mistake(StrEnum):
    """An error of the scoring of MoNuSAC 2020 that can be corrected by itself."""

    MATCHING = "matching"  # predictions whose id no matched annotated object has were counted as FP
    ABSENT_CLASS_FP = "absent-class-fp"  # predictions of classes that a region lacks did not count
    PER_PATIENT = "per-patient"  # regions of a patient were averaged like those of several


@dataclass(frozen=True)
class Convention:
    """The choices behind a figure, but for the ambiguous policy."""

    #: Which objects meet, and which of them are pairs.
    objects: ObjectScope
    pairs: Pairs
    #: Over what counts are added up, and quotients averaged.
    added_over: AddedOver = AddedOver.REGION
    mean_over: MeanOver = MeanOver.REGIONS
    #: When classes are averaged.
    classes: ClassMean = ClassMean.NONE
    #: What counts where there is nothing.
    nothing: Nothing = Nothing.ZERO
    #: What is added to denominators.
    constant: Constant = Constant.NONE

    def pooled(self) -> Convention:
        """Return the same with one quotient of the whole set."""
        return replace(self, added_over=AddedOver.SET, mean_over=MeanOver.NOTHING)

    def by_patient(self) -> Convention:
        """Return the same with the regions of a patient added up, and patients averaged."""
        return replace(self, added_over=AddedOver.PATIENT, mean_over=MeanOver.PATIENTS)


CHOICES = (
    *("objects", "pairs", "ambiguous", "added_over"),
    *("mean_over", "classes", "nothing", "constant"),
)
"""The columns of the eight choices, in the order of their tables."""


def choices_of(convention: Convention, ambiguous: str) -> dict[str, str]:
    """Return column -> word of the eight choices, in the order of `CHOICES`."""
    own = {each.name: str(getattr(convention, each.name)) for each in fields(convention)}
    return {name: own.get(name, ambiguous) for name in CHOICES}


class NamedFigure(NamedTuple):
    """A figure as a named convention computes it."""

    #: Its name among those of the convention, and how it is computed.
    name: str
    formula: Formula
    convention: Convention
    #: Whether there is one of all objects, and one of each class.
    of_all: bool = True
    of_classes: bool = False


_TOGETHER = Convention(ObjectScope.TOGETHER, Pairs.ABOVE_HALF)
_BY_CLASS = Convention(ObjectScope.BY_CLASS, Pairs.ABOVE_HALF)
_HALF = Convention(ObjectScope.TOGETHER, Pairs.HALF)
_PIECES = Convention(ObjectScope.PIECES, Pairs.BEST_IOU, nothing=Nothing.EITHER_EMPTY)
_PQ, _SQ, _DQ, _AJI, _DICE = Formula.PQ, Formula.SQ, Formula.DQ, Formula.SHARED, Formula.DICE


def _hover_net() -> tuple[NamedFigure, ...]:
    quality = replace(_TOGETHER, nothing=Nothing.ERROR, constant=Constant.SQ)
    plain = replace(quality, constant=Constant.NONE)
    types = replace(plain, pairs=Pairs.CENTROIDS).pooled()
    return (
        NamedFigure("dice", _DICE, replace(plain, pairs=Pairs.PIXELS)),
        NamedFigure("dice-2", _DICE, replace(plain, pairs=Pairs.ANY_OVERLAP)),
        NamedFigure(
            "aji",
            _AJI,
            replace(plain, pairs=Pairs.BEST_IOU, nothing=Nothing.ERROR_PREDICTION),
        ),
        NamedFigure("aji-plus", _AJI, replace(plain, pairs=Pairs.ONE_TO_ONE)),
        NamedFigure("dq", _DQ, quality),
        NamedFigure("sq", _SQ, quality),
        NamedFigure("pq", _PQ, quality),
        NamedFigure("f1-detection", Formula.DQ, types),
        NamedFigure("type-accuracy", Formula.TYPE_ACCURACY, types),
        NamedFigure("f1", Formula.TYPE_F1, types, of_all=False, of_classes=True),
    )


def _conic() -> tuple[NamedFigure, ...]:
    summed = replace(_BY_CLASS, classes=ClassMean.LAST, constant=Constant.BOTH).pooled()
    counts = Convention(
        ObjectScope.BY_CLASS,
        Pairs.COUNTS,
        mean_over=MeanOver.NOTHING,
        classes=ClassMean.LAST,
        nothing=Nothing.ONE,
    )
    return (
        NamedFigure("pq", _PQ, replace(_TOGETHER, constant=Constant.BOTH)),
        NamedFigure("mpq-plus", _PQ, summed),
        NamedFigure("pq-plus", _PQ, summed, of_all=False, of_classes=True),
        NamedFigure("r2", Formula.R2, counts, of_classes=True),
    )


def _pannuke(
    constant: Constant, mean_over: MeanOver, *, more: bool = False, of_classes: bool = False
) -> tuple[NamedFigure, ...]:
    """Return bPQ and mPQ; DQ and SQ of all nuclei, and PQ of each class, if asked for."""
    together, by_class = (
        replace(own, nothing=Nothing.NO_REFERENCE, constant=constant, mean_over=mean_over)
        for own in (_TOGETHER, _BY_CLASS)
    )
    of_class = replace(by_class, classes=ClassMean.LAST, mean_over=MeanOver.REGIONS)
    quality = (NamedFigure("bdq", _DQ, together), NamedFigure("bsq", _SQ, together))
    return (
        *(quality if more else ()),
        NamedFigure("bpq", _PQ, together),
        NamedFigure("mpq", _PQ, replace(by_class, classes=ClassMean.FIRST)),
        *((NamedFigure("pq", _PQ, of_class, of_all=False, of_classes=True),) if of_classes else ()),
    )


def _stardist(convention: Convention) -> tuple[NamedFigure, ...]:
    formulas = {"f1": _DQ, "mean-true-score": Formula.TRUE_SCORE, "mean-matched-score": _SQ}
    names = ("precision", "recall", "accuracy", *formulas, "pq")
    return tuple(NamedFigure(n, formulas.get(n) or Formula(n), convention) for n in names)


def _panopticapi() -> tuple[NamedFigure, ...]:
    things = replace(_BY_CLASS, classes=ClassMean.LAST, nothing=Nothing.BOTH_EMPTY)
    return tuple(NamedFigure(str(f), f, things.pooled(), of_classes=True) for f in (_PQ, _SQ, _DQ))


def _fcis(pieces: Convention) -> tuple[NamedFigure, ...]:
    above = replace(
        pieces, pairs=Pairs.ABOVE_HALF, nothing=Nothing.BOTH_EMPTY, constant=Constant.SQ
    )
    return NamedFigure("aji", _AJI, pieces), NamedFigure("pq", _PQ, above)


def _cellseg_metrics() -> tuple[NamedFigure, ...]:
    above = replace(_TOGETHER, constant=Constant.EVERY)
    return (
        *(NamedFigure(str(formula), formula, above) for formula in (_PQ, _SQ, _DQ)),
        NamedFigure("aji", _AJI, replace(above, pairs=Pairs.LARGEST_OVERLAP)),
        NamedFigure("dice-2", _DICE, replace(above, pairs=Pairs.ANY_OVERLAP)),
    )


def _nuceval(mean_over: MeanOver) -> tuple[NamedFigure, ...]:
    above = Convention(
        ObjectScope.NUCEVAL,
        Pairs.ABOVE_HALF,
        mean_over=mean_over,
        nothing=Nothing.ONE,
        constant=Constant.LARGER,
    )
    return (
        NamedFigure("dice", _DICE, replace(above, pairs=Pairs.PIXELS)),
        NamedFigure("aji", _AJI, replace(above, pairs=Pairs.BEST_IOU)),
        *(NamedFigure(str(formula), formula, above) for formula in (_DQ, _SQ, _PQ)),
    )


def _monusac(corrected: Iterable[Mistake]) -> tuple[NamedFigure, ...]:
    right = frozenset(corrected)
    convention = Convention(
        ObjectScope.CLASS_MASKS,
        Pairs.ABOVE_HALF if Mistake.MATCHING in right else Pairs.ABOVE_HALF_BY_ID,
        classes=ClassMean.FIRST,
        nothing=(Nothing.BOTH_EMPTY if Mistake.ABSENT_CLASS_FP in right else Nothing.NO_REFERENCE),
    )
    is_by_patient = Mistake.PER_PATIENT in right
    return (NamedFigure("pq", _PQ, convention.by_patient() if is_by_patient else convention),)


DEFAULT_PROTOCOL = "disentangled"
CHALLENGE_PROTOCOL = "monusac-2020-as-run"
CORRECTED_PROTOCOL = "monusac-2020-corrected"
DISENTANGLED = replace(_BY_CLASS, classes=ClassMean.FIRST, nothing=Nothing.BOTH_EMPTY).by_patient()
"""The choices behind the PQ of the evaluation itself."""
_FOUND = replace(_TOGETHER, nothing=Nothing.BOTH_EMPTY).by_patient()
SHOWN: Mapping[str, tuple[Formula, Convention]] = {
    **{str(formula): (formula, DISENTANGLED) for formula in (_PQ, _SQ, _DQ)},
    "detection_precision": (Formula.PRECISION, _FOUND),
    "detection_recall": (Formula.RECALL, _FOUND),
    "detection_f1": (_DQ, _FOUND),
    "detection_accuracy": (Formula.ACCURACY, _FOUND),
}
"""Metric of the evaluation itself, as a mean over patients -> how it is computed."""
CONVENTIONS: Mapping[str, tuple[NamedFigure, ...]] = {
    "hover-net": _hover_net(),
    "conic": _conic(),
    "pannuke": _pannuke(Constant.SQ, MeanOver.TISSUES, of_classes=True),
    "cellvit": _pannuke(Constant.BOTH, MeanOver.REGIONS, more=True),
    "cellvit-paper": _pannuke(Constant.BOTH, MeanOver.FOLDS),
    "stardist": _stardist(_HALF.pooled()),
    "stardist-by-image": _stardist(_HALF),
    "panopticapi": _panopticapi(),
    "monuseg": (
        NamedFigure("aji", _AJI, replace(_TOGETHER, pairs=Pairs.BEST_IOU, nothing=Nothing.ERROR)),
    ),
    "fcis-by-image": _fcis(_PIECES),
    "fcis-pooled": _fcis(_PIECES.pooled()),
    "cellseg-metrics": _cellseg_metrics(),
    CHALLENGE_PROTOCOL: _monusac(()),
    CORRECTED_PROTOCOL: _monusac(Mistake),
    DEFAULT_PROTOCOL: (NamedFigure("pq", _PQ, DISENTANGLED),),
    "nuceval": _nuceval(MeanOver.REGIONS),
    "nuceval-weighted": _nuceval(MeanOver.NUCLEI),
}
"""Name of each published convention -> its figures.

``disentangled``: the re-implementation of Foucart et al., Pattern Recognition 2023.
``monusac-2020-as-run``: the challenge's own scoring, errors included, as Foucart et al. 2021
reconstructed it. ``monusac-2020-corrected``: the same with all three errors corrected.
"""
_SCORES = {
    "conic": "mpq-plus",
    "pannuke": "mpq",
    "cellvit": "mpq",
    "cellvit-paper": "mpq",
    "monuseg": "aji",
}


def corrections_of(name: str) -> frozenset[Mistake] | None:
    """Return which errors a convention of MoNuSAC 2020 corrects; None for other conventions.

    Parameters
    ----------
    name
        As of `figures_of`.

    Raises
    ------
    SettingsError
        For an unknown name.
    """
    base, *corrections = name.split("+")
    if base not in CONVENTIONS or (corrections and base != CHALLENGE_PROTOCOL):
        names = english_list(list(CONVENTIONS), limit=99)
        raise SettingsError(
            f"unknown protocol '{name}'; known are {names}, and {CHALLENGE_PROTOCOL} with "
            "corrections after it, each behind a '+'"
        )
    known = [str(each) for each in Mistake]
    for word in corrections:
        if word not in known:
            raise SettingsError(f"corrections must be one of {english_list(known)}, found '{word}'")
    if base == CORRECTED_PROTOCOL:
        return frozenset(Mistake)
    return frozenset(map(Mistake, corrections)) if base == CHALLENGE_PROTOCOL else None


def checked_name(name: str) -> str:
    """Return the one name of a convention; raise a SettingsError if there is none."""
    corrections = corrections_of(name)
    return name if corrections is None else with_corrections(corrections)


def figures_of(name: str) -> tuple[NamedFigure, ...]:
    """Return the figures of a named convention.

    Parameters
    ----------
    name
        One of `CONVENTIONS`, or ``monusac-2020-as-run+`` with corrections joined
        by ``+``, such as ``monusac-2020-as-run+matching+per-patient``.

    Raises
    ------
    SettingsError
        For an unknown name.
    """
    corrections = corrections_of(name)
    return CONVENTIONS[name] if corrections is None else _monusac(corrections)


def score_of(name: str) -> NamedFigure:
    """Return the figure that is the one number of a named convention."""
    wanted = _SCORES.get(name, "pq")
    return next(each for each in figures_of(name) if each.name == wanted and each.of_all)


def figure_words(name: str) -> str:
    """Return how papers write the name of a figure."""
    known = {"aji": "AJI", "aji-plus": "AJI+", "mpq-plus": "mPQ+", "pq-plus": "PQ+", "r2": "R²"}
    if name in known:
        return known[name]
    head, tail = name[:-2], name[-2:]
    if tail in ("pq", "dq", "sq"):
        return head + tail.upper()
    return name.replace("-", " ").replace("f1", "F1").capitalize()


def with_corrections(corrections: Iterable[Mistake]) -> str:
    """Return the name of the challenge's scoring with corrections."""
    right = frozenset(corrections)
    if right == frozenset(Mistake):
        return CORRECTED_PROTOCOL
    return "+".join([CHALLENGE_PROTOCOL, *(str(each) for each in Mistake if each in right)])


def comparable_with(formula: Formula, convention: Convention) -> list[str]:
    """Return the figures of named conventions with the same value by definition.

    Returns
    -------
    list of str
        Such as "cellvit bpq": the same formula with the same choices.
    """
    return [
        f"{name} {figure.name}"
        for name, figures in CONVENTIONS.items()
        for figure in figures
        if figure.of_all and (figure.formula, figure.convention) == (formula, convention)
    ]
