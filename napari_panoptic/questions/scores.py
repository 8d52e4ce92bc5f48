"""Evaluate the scores of a team's predictions: calibration and best threshold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.records import fields_of
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.nuclei.metrics import FIGURE_NAMES
from napari_panoptic.nuclei.outcomes import OBJECTS
from napari_panoptic.questions.answer import Answer, AnswerPlot, AnswerTable, UnansweredError
from napari_panoptic.questions.engines.calibration import Reliability
from napari_panoptic.questions.engines.cohort_scores import CohortScores
from napari_panoptic.questions.engines.precision import COCO_IOUS, RECALLS, average_precisions
from napari_panoptic.questions.engines.scored_objects import ScoredRegion, scored_region
from napari_panoptic.questions.engines.thresholds import FIGURES, BestThreshold
from napari_panoptic.questions.question import Gathered, TeamQuestion
from napari_panoptic.tables.columns import (
    Record,
    TableSpec,
    bounds,
    name_column,
    number,
    unshown,
    whole,
)
from napari_panoptic.tables.figures import (
    counted,
    counted_as_worst,
    interval,
    ratio,
    signed,
)
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.vocabulary import Side

if TYPE_CHECKING:
    import pandas as pd

BEST_FIGURES = ("pq", "detection_f1")
"""The figures for which a threshold is chosen."""
NO_SCORES = "no prediction has a score"
NO_SCORES_ADVICE = (
    "name the score in cohort.toml (predictions.score), or add a table or a probability map; see "
    "docs/tasks/scores.md"
)
PRECISION, CALIBRATION, THRESHOLDS_PLOT = "Precision and recall", "Calibration", "Thresholds"
"""The titles of the plots."""
_SUREST = 5
"""Number of wrong predictions that the terminal prints."""

AVERAGE = TableSpec(
    "average_precision.csv",
    "class and IoU; the class `mean` is the mean over classes with an annotated object",
    [name_column("class"), number("iou", "IoU"), number("ap", "AP"), whole("references")],
)
CURVES = TableSpec(
    "precision_recall.csv",
    "class and recall, from 0 to 1 in steps of 0.01; the class `all` has all classes as one",
    [
        unshown("class", "iou", "recall"),
        unshown("precision", about="the highest at this recall or a higher one"),
        unshown("score", about="the highest threshold that reaches the recall"),
    ],
)
RELIABILITY = TableSpec(
    "reliability.csv",
    "bin of scores",
    [
        bounds("from", "to", "scores"),
        whole("objects", "predictions"),
        whole("right", about="TP"),
        number("score", "mean score"),
        number("share", "share right"),
        bounds("low", "high", "95 % band"),
    ],
)
THRESHOLDS = TableSpec(
    "thresholds.csv",
    "threshold: predictions of a lower score are removed",
    [unshown("threshold", "kept"), unshown(*FIGURES, about="means over patients")],
)
CHOSEN = TableSpec(
    "chosen_thresholds.csv",
    "figure and patient",
    [
        unshown("figure", "patient"),
        unshown("threshold", about="at which the figure is best over all other patients"),
        unshown("before", about="with all predictions"),
        unshown("after", about="at that threshold"),
    ],
)
FAILURES = TableSpec(
    "failures_by_score.csv",
    "FP or misclassified prediction with a score, the highest score first",
    [unshown(*OBJECTS.keys)],
    "Wrong predictions, highest score first:",
)


@dataclass(frozen=True, kw_only=True)
class ScoreQuality(TeamQuestion):
    """What the scores of a team's predictions are worth."""

    title = "Scores"
    heading = "Scores and thresholds"
    key = "Alt-t"
    about = (
        "Evaluate the scores (confidences) of a team's predictions: average precision per class "
        "and IoU, calibration, PQ and F1 over thresholds, the best threshold with its figure for "
        "patients that it was not chosen on, and the wrong predictions, highest score first. Exit "
        "status: 0 done, 1 nothing could be evaluated, or no prediction has a score, 2 wrong "
        "arguments."
    )
    verb = "Evaluate"
    hint = (
        "Press “Evaluate” for average precision, calibration, the best threshold, and the "
        "predictions that are sure and wrong, over the cohort."
    )
    tables = (AVERAGE, CURVES, RELIABILITY, THRESHOLDS, CHOSEN, FAILURES)
    too_large = "the region is too large to hold in memory; its scores are left out"

    def part(self, evaluation: Evaluation, region: Region) -> ScoredRegion:
        """Return the objects of a region with their scores."""
        return scored_region(evaluation, region.patient, region.name)

    def scores(self, gathered: Gathered) -> CohortScores:
        """Return the scores over the cohort, whose figures are computed on first use."""
        return CohortScores(self.team, gathered.parts, gathered.findings)

    def answered(
        self, cohort: Cohort, gathered: Gathered, progress: Progress = UNWATCHED
    ) -> Answer:
        """Compute precision, calibration and thresholds, and list the wrong predictions."""
        scores, iou = self.scores(gathered), self.matching.iou_threshold
        if not scores.has_scores:
            findings = (*cohort.findings, *gathered.findings)
            raise UnansweredError(f"{counts_sentence(scores)}; {NO_SCORES_ADVICE}", findings)
        headline, *notes = (f"{sentence}." for sentence in score_sentences(scores))
        captions, best = plot_captions(iou), tuple(best_thresholds(scores))
        return Answer(
            headline=headline,
            notes=tuple(notes),
            tables=(
                self._wrong(failures_table(scores)),
                AnswerTable(
                    AVERAGE, average_table(scores, iou), heading="average precision", printed=0
                ),
                AnswerTable(CURVES, curves_table(scores, iou)),
                AnswerTable(
                    RELIABILITY,
                    reliability_table(scores.reliability),
                    heading="calibration",
                    printed=0,
                ),
                AnswerTable(THRESHOLDS, thresholds_table(scores)),
                AnswerTable(CHOSEN, chosen_table(scores)),
            ),
            plots=tuple(
                AnswerPlot(
                    "score_plots",
                    name,
                    f"{captions[name][:1].upper()}{captions[name][1:]}.",
                    (scores, cohort.team_names, iou, best, name),
                )
                for name in plot_names(scores)
            ),
            record=self.team_record(
                cohort,
                gathered,
                predictions=scores.predictions,
                without_score=scores.unscored,
                **_figures(scores),
            ),
        )

    def _wrong(self, frame: pd.DataFrame) -> AnswerTable:
        """Return the table of wrong predictions."""

        def prediction(row: int) -> FailureSet:
            at = frame.iloc[row]
            name = FailureName(self.team, at["region"], Side.PREDICTION, int(at["id"]))
            return FailureSet(f"Sure and wrong predictions of {self.team}", frozenset({name}))

        return AnswerTable(
            FAILURES,
            frame,
            prediction,
            sentence=lambda row: failure_sentence(frame.iloc[row].to_dict()),
            is_of_objects=True,
            heading="sure and wrong predictions",
            printed=_SUREST,
        )


# --- tables -----------------------------------------------------------------------------------
def average_table(scores: CohortScores, iou: float) -> pd.DataFrame:
    """Return average precision per class, at each IoU of COCO and at another one."""
    ious = sorted({*COCO_IOUS, iou})
    found = scores.average_precisions
    if len(ious) > len(COCO_IOUS):
        found = average_precisions(scores.regions, ious)
    own = {name: scores.precision_recall(iou, name).references for name in scores.class_names}
    references = own | {"mean": sum(own.values())}
    return AVERAGE.frame(
        {"class": name, "iou": round(at, 12), "ap": ap, "references": references[str(name)]}
        for name, row in zip(found.index, found.to_numpy(), strict=True)
        for at, ap in zip(ious, row.tolist(), strict=True)
    )


def curves_table(scores: CohortScores, iou: float) -> pd.DataFrame:
    """Return interpolated precision over recall, per class and for all classes as one."""
    import pandas as pd

    frames = []
    for name in ("", *scores.class_names):
        precision, score = scores.precision_recall(iou, name).at_recalls()
        columns = {"recall": RECALLS.round(2), "precision": precision, "score": score}
        frames.append(pd.DataFrame({"class": name or "all", "iou": iou} | columns))
    return pd.concat(frames, ignore_index=True)


def reliability_table(found: Reliability | None) -> pd.DataFrame:
    """Return one row per bin of scores; none if scores are not probabilities."""
    import pandas as pd

    if found is None:
        return RELIABILITY.frame([])
    return pd.DataFrame(
        {
            "from": found.edges[:-1].round(12),
            "to": found.edges[1:].round(12),
            **fields_of(found, "objects", "right", "score", "share", "low", "high"),
        }
    )


def thresholds_table(scores: CohortScores) -> pd.DataFrame:
    """Return figures over thresholds; empty if they are not available."""
    import pandas as pd

    curve = scores.curve
    if curve is None:
        return THRESHOLDS.frame([])
    every = np.sort(
        np.concatenate([region.outcomes.prediction.score for region in scores.regions])
    )  # those without a score, which stay, come last
    kept = len(every) - np.searchsorted(every, curve.thresholds, side="left")
    means = {name: curve.mean(name) for name in FIGURES}
    return pd.DataFrame({"threshold": curve.thresholds, "kept": kept} | means)


def chosen_table(scores: CohortScores) -> pd.DataFrame:
    """Return the threshold chosen without each patient, and the patient's figures at it."""
    import pandas as pd

    frames = [
        pd.DataFrame(
            {
                "figure": found.figure,
                "patient": list(found.patients),
                "threshold": found.chosen,
                "before": found.before,
                "after": found.left_out,
            }
        )
        for found in best_thresholds(scores)
    ]
    return pd.concat(frames, ignore_index=True) if frames else CHOSEN.frame([])


def failures_table(scores: CohortScores) -> pd.DataFrame:
    """Return the wrong predictions, the highest score first."""
    frame = scores.failures.assign(team=scores.team)
    return frame.reindex(columns=FAILURES.keys)


def best_thresholds(scores: CohortScores) -> list[BestThreshold]:
    """Return the best threshold for each of `BEST_FIGURES`; none if not available."""
    found = [scores.best(figure) for figure in BEST_FIGURES]
    return [best for best in found if best is not None]


def _figures(scores: CohortScores) -> dict[str, Any]:
    """Return the figures of ``scores.json``."""
    calibration = scores.reliability
    columns = ("threshold", "baseline", "optimistic", "counted_as_worst", "honest", "gain")
    return {
        "ap": scores.average_precisions.to_numpy()[-1].mean(),
        "ece": None if calibration is None else calibration.ece,
        "ece_by_chance": None if calibration is None else calibration.by_chance,
        "best_thresholds": {
            found.figure: fields_of(found, *columns) for found in best_thresholds(scores)
        },
        "every_score_is_a_threshold": scores.curve is not None and scores.curve.is_complete,
    }


def plot_names(scores: CohortScores) -> list[str]:
    """Return the titles of the plots that can be drawn of a team's scores."""
    return [
        PRECISION,
        *([] if scores.reliability is None else [CALIBRATION]),
        *([] if scores.curve is None else [THRESHOLDS_PLOT]),
    ]


def plot_captions(iou: float) -> dict[str, str]:
    """Return the caption of each plot, as the part of a sentence. ``iou``: of matching pairs."""
    return {
        PRECISION: f"precision over recall at an IoU of {iou:g}, all classes (thick) and each "
        "class",
        CALIBRATION: "share of right predictions (TP) over their scores, with 95 % bands (Wilson's "
        "interval over objects or, from six patients on and if wider, bootstrap over patients); on "
        "the diagonal, scores are probabilities",
        THRESHOLDS_PLOT: "PQ and F1 without predictions below each threshold, mean over patients; "
        "vertical lines: thresholds with the best values",
    }


# --- sentences --------------------------------------------------------------------------------


def score_sentences(scores: CohortScores) -> Iterator[str]:
    """Yield sentences on the quality of the scores of a team."""
    yield counts_sentence(scores)
    if not scores.has_scores:
        return
    means = scores.average_precisions.to_numpy()[-1]
    yield (
        f"Average precision {ratio(float(means.mean()))}, mean over IoU 0.5 to 0.95 "
        f"({ratio(float(means[0]))} at 0.5, {ratio(float(means[5]))} at 0.75)"
    )
    yield calibration_sentence(scores.reliability)
    best = best_thresholds(scores)
    yield from map(best_sentence, best)
    if not best:
        yield "No figures over thresholds: under these settings, matches depend on all predictions"


def counts_sentence(scores: CohortScores) -> str:
    """Describe how many predictions have a score."""
    if not scores.has_scores:
        return f"{scores.team}: {NO_SCORES}"
    without = f"{scores.unscored} of them without a score" if scores.unscored else "all scored"
    return f"{scores.team}: {counted(scores.predictions, 'prediction')}, {without}"


def calibration_sentence(found: Reliability | None) -> str:
    """Describe how far scores are from the share of right predictions."""
    if found is None:
        return "Scores outside 0 to 1 are not probabilities: no calibration"
    total = found.objects.sum()
    mean_score = float(np.nansum(found.score * found.objects) / total)
    return (
        f"Calibration error {ratio(found.ece)} ({ratio(found.by_chance)} by chance): mean score "
        f"{ratio(mean_score)}, share right {ratio(float(found.right.sum() / total))}"
    )


def best_sentence(found: BestThreshold) -> str:
    """Describe the gain of a threshold, by the optimistic and the honest figure."""
    name = FIGURE_NAMES[found.figure]
    name = name[0].upper() + name[1:]
    if math.isnan(found.threshold):
        return f"{name} is undefined at all thresholds"
    sentence = (
        f"{name} is best without scores below {found.threshold:.3g}: {ratio(found.optimistic)}, "
        f"with all predictions {ratio(found.baseline)}, over "
        f"{counted(int((~np.isnan(found.before)).sum()), 'patient')}"
    )
    if found.counted_as_worst:
        rule = counted_as_worst(found.counted_as_worst, "threshold")
        sentence += f"; undefined at some thresholds: {rule}"
    if math.isnan(found.honest.mean):
        return f"{sentence}; too few patients to estimate it for other patients"
    low, high = found.gain.low, found.gain.high
    certainty = found.gain.why if math.isnan(low) else f"95 % {interval(low, high)}"
    return (
        f"{sentence}; for patients who did not choose the threshold {ratio(found.honest.mean)}, "
        f"a change of {signed(found.gain.mean)} ({certainty})"
    )


def failure_sentence(row: Record) -> str:
    """Return a wrong prediction with its score, such as "0.98 FP spurious …"."""
    what = f"{row['status']} {row['cause']}".strip()
    if row["partner_class"]:
        what += f" as {row['class']}, annotated as {row['partner_class']}"
    else:
        what += f" {row['class']}"
    return f"{row['score']:.3f} {what}: prediction {row['id']} in region {row['region']}"
