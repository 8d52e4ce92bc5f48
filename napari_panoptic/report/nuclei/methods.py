"""A methods section for a paper: what was computed, in words, with references."""

from __future__ import annotations

from collections.abc import Mapping

from napari_panoptic import __version__
from napari_panoptic.nuclei.values.settings import (
    AmbiguousPolicy,
    Correction,
    EvaluationSettings,
    Matching,
    Outlines,
    Overlaps,
    Restoration,
    Scoring,
)
from napari_panoptic.statistics.bootstrap import LEVEL, RESAMPLES, SEED
from napari_panoptic.statistics.friedman import SIGNIFICANCE

REFERENCES: Mapping[str, str] = {
    "kirillov": "Kirillov A, He K, Girshick R, Rother C, Dollár P. Panoptic segmentation. "
    "Proceedings of the IEEE/CVF Conference on Computer Vision and Pattern Recognition (CVPR), "
    "2019, 9404–9413.",
    "verma": "Verma R, Kumar N, Patil A, et al. MoNuSAC2020: a multi-organ nuclei segmentation "
    "and classification challenge. IEEE Transactions on Medical Imaging 40(12), 2021, 3413–3423.",
    "errors": "Foucart A, Debeir O, Decaestecker C. Analysis of the MoNuSAC 2020 challenge "
    "evaluation and results: implementation errors. Université Libre de Bruxelles, 2021.",
    "lessons": "Foucart A, Debeir O, Decaestecker C. Evaluating participating methods in image "
    "analysis challenges: lessons from MoNuSAC 2020. Pattern Recognition, 2023, 109600.",
    "demsar": "Demšar J. Statistical comparisons of classifiers over multiple data sets. Journal "
    "of Machine Learning Research 7, 2006, 1–30.",
    "kerby": "Kerby DS. The simple difference formula: an approach to teaching nonparametric "
    "correlation. Comprehensive Psychology 3, 2014.",
    "holm": "Holm S. A simple sequentially rejective multiple test procedure. Scandinavian "
    "Journal of Statistics 6(2), 1979, 65–70.",
    "efron": "Efron B. Better bootstrap confidence intervals. Journal of the American Statistical "
    "Association 82(397), 1987, 171–185.",
}
"""What the sentences refer to."""

_AMBIGUOUS: Mapping[AmbiguousPolicy, str] = {
    AmbiguousPolicy.CLIP: "Pixels in areas that the annotation marks as ambiguous were removed "
    "from annotation and predictions; objects of which no pixel was left were ignored.",
    AmbiguousPolicy.CLIP_PREDICTIONS: "Pixels in areas that the annotation marks as ambiguous "
    "were removed from the predictions; predictions of which no pixel was left were ignored.",
    AmbiguousPolicy.MAJORITY: "Pixels in areas that the annotation marks as ambiguous did not "
    "count in any intersection or union; unmatched objects with more than half of their area in "
    "one were ignored.",
    AmbiguousPolicy.KEEP: "Areas that the annotation marks as ambiguous were treated like any "
    "other area.",
}
_OUTLINES: Mapping[Outlines, str] = {
    Outlines.AS_PUBLISHED: "the whole predicted object and the part of the annotated object that "
    "the ambiguous policy leaves",
    Outlines.BOTH_CLIPPED: "the parts of both objects that the ambiguous policy leaves",
    Outlines.BOTH_WHOLE: "the whole objects",
}
_CORRECTIONS: Mapping[Correction, str] = {
    Correction.MATCHING: "unmatched predictions were counted as such, whatever their ids",
    Correction.ABSENT_CLASS_FP: "false positives of classes without an annotated nucleus in the "
    "region were counted",
    Correction.PER_PATIENT: "counts were summed over the regions of a patient before PQ was "
    "computed",
}


class Citations:
    """Numbers references in the order in which sentences first cite them."""

    def __init__(self) -> None:
        self._keys: list[str] = []

    def cite(self, *keys: str) -> str:
        """Return the numbers of references, such as ``[1, 2]``."""
        for key in keys:
            if key not in self._keys:
                self._keys.append(key)
        return f"[{', '.join(str(self._keys.index(key) + 1) for key in keys)}]"

    @property
    def listed(self) -> list[str]:
        """The references cited so far, in order."""
        return [REFERENCES[key] for key in self._keys]


def methods_section(settings: EvaluationSettings) -> tuple[list[str], list[str]]:
    """Describe an evaluation as a paper would.

    Parameters
    ----------
    settings
        Under which figures were computed.

    Returns
    -------
    paragraphs, references
        Plain text; the n-th reference is cited as ``[n]``.
    """
    citations = Citations()
    paragraphs = [
        _objects(settings, citations),
        _figures(settings, citations),
        _averages(settings, citations),
        _statistics(citations),
    ]
    return paragraphs, citations.listed


def _objects(settings: EvaluationSettings, citations: Citations) -> str:
    lessons = citations.cite("lessons")
    restored = "the drawn borders were removed"
    if settings.restoration is Restoration.BORDER_DILATED:
        grown = "grown" if settings.radius >= 0 else "shrunk"
        restored = (
            f"the drawn borders were removed and each object {grown} by {abs(settings.radius)} px"
        )
    rule = (
        f"An annotated and a predicted nucleus match where their intersection over union (IoU) is "
        f"strictly above {settings.iou_threshold:g}"
    )
    if settings.one_to_one_enforced:
        rule += ", one to one such that the summed IoU is largest"
    if settings.matching is Matching.CENTROID:
        rule = (
            "An annotated nucleus matches the prediction that overlaps it best, provided that the "
            "centroid of the prediction lies on the nucleus"
        )
    classes = (
        "; matching was done for each class by itself"
        if settings.scoring is Scoring.CHALLENGE
        else "; matching did not look at classes"
    )
    drawn = "in the order of the file, later ones over earlier ones"
    if settings.overlaps is Overlaps.KEEP:
        drawn = "each with all of its pixels, as were predictions, also where others share them"
        rule += ", one to one such that the summed IoU is largest where objects share pixels"
    return (
        f"Predictions were evaluated with napari-panoptic {__version__}. Annotated polygons were "
        f"rasterised {drawn}. Where predictions "
        f"were colour-coded images, {restored} and connected components were taken as objects "
        f"{lessons}. {_AMBIGUOUS[settings.ambiguous]} {rule}{classes}."
    )


def _figures(settings: EvaluationSettings, citations: Citations) -> str:
    panoptic = citations.cite("kirillov", "verma")
    lessons = citations.cite("lessons")
    text = (
        f"Panoptic quality of a class is PQ = ΣIoU / (TP + FP/2 + FN/2), the product of "
        f"segmentation quality SQ = ΣIoU / TP and detection quality DQ = TP / (TP + FP/2 + FN/2) "
        f"{panoptic}; a matched pair of different classes is an FP of the one and an FN of the "
        f"other. PQ and DQ are means over the classes that occur in annotation or prediction, SQ "
        f"over those with a TP. Detection precision, recall, F1 and accuracy, TP / (TP + FP + FN), "
        f"do not look at classes; balanced accuracy is the mean over classes of the share of "
        f"matched nuclei that were given their class; mean IoU is over matched pairs, averaged "
        f"over classes {lessons}."
    )
    if settings.distances:
        text += (
            f" The Hausdorff distance of a matched pair is the largest distance from a point on "
            f"either outline to the other outline, of {_OUTLINES[settings.outlines]}."
        )
    return text


def _averages(settings: EvaluationSettings, citations: Citations) -> str:
    if settings.scoring is Scoring.DISENTANGLED:
        return (
            "Counts were summed over the regions of a patient before figures were computed from "
            "them, and a team's score is the mean of PQ over the patients for whom it is defined. "
            "Undefined figures were left out of means, never taken as 0."
        )
    text = (
        f"The score is that of the MoNuSAC 2020 challenge {citations.cite('verma')}, as it was "
        f"reconstructed afterwards {citations.cite('errors')}: the mean over units of the mean "
        f"PQ over classes"
    )
    if not settings.corrections:
        return f"{text}, with the errors of the published code left as they were."
    chosen = [_CORRECTIONS[c] for c in Correction if c in settings.corrections]
    return f"{text}. Of the errors of the published code these were corrected: {'; '.join(chosen)}."


def _statistics(citations: Citations) -> str:
    ranks = citations.cite("demsar")
    return (
        f"Teams were compared over patients with figures of all of them. The Friedman test, with "
        f"Kendall's W as effect size, asked for any difference; only where it found one "
        f"(p < {SIGNIFICANCE:g}) the Nemenyi test said between which teams {ranks}. A team's "
        f"rank is 1 + the number of teams that are significantly better. Pairs of teams were "
        f"compared by the two-sided "
        f"Wilcoxon signed-rank test, with the matched-pairs rank-biserial correlation as effect "
        f"size {citations.cite('kerby')} and p-values corrected for their number "
        f"{citations.cite('holm')}. Intervals are {LEVEL:.0%} bootstrap intervals, bias-corrected "
        f"and accelerated {citations.cite('efron')} where that is defined, from {RESAMPLES:,d} "
        f"resamples of the patients (seed {SEED})."
    )
