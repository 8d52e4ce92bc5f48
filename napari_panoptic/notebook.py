"""The Python interface, without napari and Qt: arrays and cohorts in, tables and pictures out.

The public names are also names of the package: ``import napari_panoptic as npan``.
"""

from __future__ import annotations

import html
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_panoptic.common.errors import LabelError, PanopticError, SettingsError
from napari_panoptic.common.findings import Finding, FindingKind
from napari_panoptic.common.records import fields_of
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.kernels.restore import components
from napari_panoptic.nuclei import evaluate as engine
from napari_panoptic.nuclei.evaluate import Evaluation
from napari_panoptic.questions.engines.scored_objects import scored_region
from napari_panoptic.questions.engines.thresholds import Thresholded, at_threshold
from napari_panoptic.values.cohort import ONLY_CLASS, Cohort, Task
from napari_panoptic.values.conventions import DEFAULT_PROTOCOL
from napari_panoptic.values.labels import (
    Scores,
    checked_array,
    checked_mask,
    plain_array,
)
from napari_panoptic.values.settings import EvaluationSettings

if TYPE_CHECKING:
    import pandas as pd

    from napari_panoptic.questions.answer import Answer
    from napari_panoptic.questions.engines.cohort_scores import CohortScores
    from napari_panoptic.questions.question import AnyQuestion, Question

WORST = 8
"""Number of failures that a notebook shows by default."""
_SHOWN = ("pq", "sq", "dq", "detection_f1", "detection_precision", "detection_recall", "mean_iou")

_WHITE = 255
"""Of masks of 8 bits."""

Classes = Mapping[int, str] | str | None
ObjectScores = Mapping[int, float] | ArrayLike | None


@dataclass(frozen=True, eq=False, repr=False)
class PairResult(Evaluation):
    """The evaluation of one prediction, which a notebook shows as metrics and worst failures."""

    #: The image behind the objects, for pictures of them; or None.
    image: Any = None
    #: What was odd in the arrays, a row each; see `OpenedCohort.findings`.
    findings: pd.DataFrame = field(default_factory=lambda: _findings_table(()))

    @cached_property
    def scores(self) -> CohortScores:
        """What the scores of the predictions are worth: see `OpenedCohort.scores`."""
        from napari_panoptic.questions.engines.cohort_scores import CohortScores

        return CohortScores("", [scored_region(self, "", "")])

    def ask(self, question: str, **asked: Any) -> ShownAnswer:
        """Ask a question about the pair; see `Comparison.ask`."""
        return Comparison({"": self}).ask(question, **asked)

    def at_threshold(self, threshold: float) -> Thresholded:
        """Return outcomes, counts and metrics without the predictions of a lower score."""
        return at_threshold(self, threshold)

    def worst(self, n: int = WORST) -> pd.DataFrame:
        """Return the largest failures: rows of `objects` that are FN, FP or misclassified.

        A misclassified pair is listed once, by its reference object.
        """
        from napari_panoptic.report.nuclei.gallery import failed

        return failed(self.objects).sort_values("area_px", ascending=False, kind="stable").head(n)

    def _repr_html_(self) -> str:
        odd = "".join(f"<p>{html.escape(message)}</p>" for message in self.findings["message"])
        return f"{odd}{_metrics_html({'': self})}{_pictures_html(self, self.worst())}"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Several predictions against one reference."""

    #: Name of the prediction -> its evaluation.
    results: Mapping[str, PairResult]

    def __repr__(self) -> str:
        figures = (f"{team} PQ {result.metrics.pq:.3f}" for team, result in self.results.items())
        return f"<Comparison: {', '.join(figures)}>"

    def __getitem__(self, team: str) -> PairResult:
        """Return the evaluation of one prediction."""
        return self.results[team]

    def ask(self, question: str, *, team: str | None = None, **asked: Any) -> ShownAnswer:
        """Ask what the panel of this name shows of a region.

        Parameters
        ----------
        question
            ``ambiguous``, ``groups`` or ``teams``.
        team
            The prediction that it is about; the first if None.
        asked
            Its inputs, such as ``first`` and ``second`` of ``ambiguous``.

        Raises
        ------
        SettingsError
            For an unknown question.
        UnansweredError
            If it has no answer here.

        Examples
        --------
        >>> comparison.ask("groups", team="new").tables["all kinds"]  # doctest: +SKIP
        """
        from napari_panoptic.display.regions.here import Here
        from napari_panoptic.display.regions.question import region_question

        own = region_question(question)(**asked)
        here = Here("", next(iter(self.results)) if team is None else team, self.results)
        return ShownAnswer(own, own.answered(here))

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """One row per prediction, one column per metric; NaN where undefined."""
        import pandas as pd

        rows = {team: dict(result.metrics) for team, result in self.results.items()}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("team")

    @cached_property
    def objects(self) -> pd.DataFrame:
        """One row per object and prediction, as in ``objects.csv``."""
        from napari_panoptic.tables.columns import stacked

        return stacked({team: result.objects for team, result in self.results.items()})

    @cached_property
    def by_class(self) -> pd.DataFrame:
        """One row per prediction and class."""
        from napari_panoptic.tables.columns import stacked

        return stacked({team: result.by_class for team, result in self.results.items()})

    @cached_property
    def findings(self) -> pd.DataFrame:
        """What was odd in the arrays, a row per prediction and finding."""
        import pandas as pd

        return pd.concat(
            [result.findings.assign(team=team) for team, result in self.results.items()],
            ignore_index=True,
        )

    def _repr_html_(self) -> str:
        return _metrics_html(self.results)


@dataclass(frozen=True, eq=False, repr=False)
class CohortResult:
    """The tables of an evaluated cohort.

    Their columns are those of the CSV files of the same names, and come first.
    """

    #: See docs/reference/figures.md.
    objects: pd.DataFrame
    regions: pd.DataFrame
    patients: pd.DataFrame
    patients_by_class: pd.DataFrame
    teams: pd.DataFrame
    confusion: pd.DataFrame
    #: What was missing, unreadable or odd: kind, message, region, team.
    findings: pd.DataFrame

    def __repr__(self) -> str:
        rows = zip(self.teams["team"], self.teams["pq_mean"], strict=True)
        figures = ", ".join(f"{team} PQ {pq:.3f}" for team, pq in rows)
        counts = counted(len(self.objects), "object"), counted(len(self.findings), "finding")
        return f"<CohortResult: {figures or 'no team'}; {', '.join(counts)}>"

    def _repr_html_(self) -> str:
        return str(self.teams.to_html(index=False, float_format="{:.3f}".format, border=0))


@dataclass(frozen=True, eq=False, repr=False)
class ShownAnswer:
    """The answer to a question, which a notebook shows as a report does."""

    #: What was asked, and what was found.
    question: AnyQuestion
    answer: Answer

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to {self.question.name()}: {self.answer.headline}>"

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Title of each table -> its rows."""
        return {table.title: table.frame for table in self.answer.tables}

    def _repr_html_(self, teams: Sequence[str] = ()) -> str:
        from napari_panoptic.report.answers import answer_parts
        from napari_panoptic.tables.markup import fragment

        return str(fragment(*answer_parts(self.answer, self.question.name(), teams)))


@dataclass(frozen=True, eq=False, repr=False)
class CohortAnswer(ShownAnswer):
    """The answer to a question over a cohort."""

    question: Question
    cohort: Cohort

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Name of each file -> its rows."""
        return self.answer.files

    def objects(self, table: str, row: int) -> pd.DataFrame:
        """Return the objects that a row of a table is about: team, region, side, id."""
        import pandas as pd

        (own,) = (one for one in self.answer.tables if one.spec.file == table)
        names = () if own.objects is None else own.objects(row).names
        columns = ["team", "region", "side", "id"]
        rows = [fields_of(name, *columns) for name in names]
        frame = pd.DataFrame(rows, columns=columns)
        return frame.sort_values(columns, ignore_index=True)

    def save(self, folder: str | Path) -> None:
        """Write the files of the command into a folder."""
        from napari_panoptic.report.answers import write_answer

        write_answer(self.question, self.answer, self.cohort, Path(folder))

    def _repr_html_(self, teams: Sequence[str] = ()) -> str:
        return super()._repr_html_(teams or self.cohort.team_names)


class OpenedCohort:
    """A cohort folder: its regions and teams, and their evaluation.

    Parameters
    ----------
    cohort
        What was found in the folder.
    """

    def __init__(self, cohort: Cohort) -> None:
        self.cohort = cohort

    def __repr__(self) -> str:
        return (
            f"<cohort {self.cohort.name}: {counted(len(self.cohort.regions), 'region')}, "
            f"{counted(len(self.cohort.patients), 'patient')}, "
            f"teams {', '.join(self.teams) or 'none'}>"
        )

    @property
    def teams(self) -> list[str]:
        """Names of the teams."""
        return [team.name for team in self.cohort.competing_teams]

    @cached_property
    def regions(self) -> pd.DataFrame:
        """One row per region: region, patient, image (path or None), annotated, predictions."""
        import pandas as pd

        predicted = [region for _, region in self.cohort.predictions]
        return pd.DataFrame(
            {
                "region": region.name,
                "patient": region.patient,
                "image": None if region.image is None else str(region.image),
                "annotated": region.reference is not None,
                "predictions": predicted.count(region.name),
            }
            for region in self.cohort.regions
        )

    @cached_property
    def findings(self) -> pd.DataFrame:
        """What was missing, extra or odd in the folder."""
        return _findings_table(self.cohort.findings)

    def evaluate(
        self,
        team: str | Sequence[str] | None = None,
        *,
        settings: EvaluationSettings | None = None,
        jobs: int | None = None,
    ) -> CohortResult:
        """Evaluate a team, several, or all of them, in threads.

        Parameters
        ----------
        team
            Name or names; all competing teams if None.
        settings
            How to evaluate; the defaults if None.
        jobs
            Regions at a time; one per processor if None.

        Raises
        ------
        CohortError
            For an unknown team.
        PanopticError
            If nothing could be evaluated.
        """
        import pandas as pd

        from napari_panoptic.nuclei.regions.cohort_evaluation import CohortEvaluation
        from napari_panoptic.nuclei.regions.conditions import Condition
        from napari_panoptic.nuclei.regions.experiment import Experiment
        from napari_panoptic.nuclei.regions.results import placed
        from napari_panoptic.nuclei.regions.run import run_regions
        from napari_panoptic.report.nuclei import tables

        wanted = [team] if isinstance(team, str) else self.teams if team is None else list(team)
        names = tuple(self.cohort.checked_team(name) for name in wanted)
        settings = settings or EvaluationSettings()
        work = Experiment(names, (Condition(DEFAULT_PROTOCOL, settings),))
        found = [r for (results,) in run_regions(self.cohort, work, jobs=jobs) for r in results]
        evaluation = CohortEvaluation(self.cohort, settings, DEFAULT_PROTOCOL, found)
        if not evaluation.evaluated:
            reasons = "; ".join(dict.fromkeys(f.message for f in evaluation.findings))
            raise PanopticError(
                f"nothing could be evaluated: {reasons or 'there are no regions'}",
                path=self.cohort.root,
            )
        objects = [
            placed(r.objects, r.place) for r in evaluation.evaluated if r.objects is not None
        ]
        return CohortResult(
            objects=pd.concat(objects, ignore_index=True),
            regions=tables.regions_table(evaluation),
            patients=tables.patients_table(evaluation),
            patients_by_class=tables.patients_by_class_table(evaluation),
            teams=tables.teams_table(evaluation),
            confusion=tables.confusion_table(evaluation),
            findings=_findings_table(evaluation.findings),
        )

    def conventions(self, **asked: Any) -> pd.DataFrame:
        """Return the figures of published evaluation codes; the table ``conventions.csv``.

        Parameters
        ----------
        asked
            As in `ask`: ``teams``, ``convention``, ``metadata``, ``settings`` and others.
        """
        return self.ask("conventions", **asked).tables["conventions.csv"]

    def ask(self, question: str, *, jobs: int | None = None, **asked: Any) -> CohortAnswer:
        """Ask a question over the cohort.

        Parameters
        ----------
        question
            Its name, that of its command: ``causes``, ``groups``, ``slices`` and others.
        jobs
            Regions at a time; one per processor if None.
        asked
            What is asked, as the options of the command: ``team`` or ``teams`` (default: all), and
            others; ``settings`` for how objects are matched.

        Raises
        ------
        SettingsError
            For an unknown question or option, or a value that it cannot have.
        CohortError
            For an unknown team.
        PanopticError
            If nothing could be evaluated.

        Examples
        --------
        >>> cohort.ask("causes", team="careful").tables["causes.csv"]  # doctest: +SKIP
        """
        from napari_panoptic.questions.question import question_kind

        kind = question_kind(question)
        names = {own.name for own in fields(kind)}
        if "teams" in names:
            asked.setdefault("teams", tuple(self.teams))
        if unknown := [name for name in asked if name not in names]:
            known = english_list(sorted(names), limit=99)
            raise SettingsError(f"'{question}' has no option '{unknown[0]}'; it has {known}")
        needed = [own.name for own in fields(kind) if own.default is own.default_factory]
        if missing := [name for name in needed if name not in asked]:
            raise SettingsError(f"'{question}' needs the option '{missing[0]}'")
        own = kind(**asked)
        for team in own.teams_read(self.cohort):
            self.cohort.checked_team(team)
        if why := own.why_not(self.cohort):
            raise SettingsError(why)
        return CohortAnswer(own, own.answer(self.cohort, jobs=jobs), self.cohort)

    def scores(self, team: str, *, settings: EvaluationSettings | None = None) -> CohortScores:
        """Evaluate a team, and return what the scores of its predictions are worth.

        Parameters
        ----------
        team
            Its name.
        settings
            How to match objects; the defaults if None.

        Returns
        -------
        CohortScores
            With ``.average_precisions``, ``.reliability``, ``.failures``, ``.curve`` and
            ``.best()``.

        Raises
        ------
        CohortError
            For an unknown team.
        UnansweredError
            If nothing could be evaluated.
        """
        from napari_panoptic.questions.scores import ScoreQuality

        name = self.cohort.checked_team(team)
        question = ScoreQuality(team=name, settings=settings or EvaluationSettings())
        return question.scores(question.gather(self.cohort))


def evaluate_pair(
    reference: ArrayLike,
    prediction: ArrayLike,
    *,
    reference_classes: Classes = None,
    prediction_classes: Classes = None,
    ambiguous: ArrayLike | None = None,
    settings: EvaluationSettings | None = None,
    mpp: float | None = None,
    class_names: Sequence[str] | None = None,
    image: ArrayLike | None = None,
    scores: ObjectScores = None,
) -> PairResult:
    """Evaluate a predicted label image against a reference label image.

    Parameters
    ----------
    reference, prediction
        Integer arrays (y, x) of one shape: 0 for background, any positive id
        per object, as `skimage.measure.label` returns them. The 8-connected pieces of a
        boolean array become objects, as those of a binary mask in a file, and are reported
        in ``.findings``, as are those of an array whose only positive number is 255, unless
        its classes name an object 255. Other objects keep their pieces.
    reference_classes, prediction_classes
        Id -> class name, for at least every id in the array; or one name for
        all. If None, every object has the class "Nucleus".
    ambiguous
        Boolean array (y, x), True where the annotation excludes the area.
    settings
        How to evaluate; the defaults if None.
    mpp
        Micrometres per pixel; without it distances are in px only.
    class_names
        The classes in the order of the confusion matrix. By default those of
        the mappings.
    image
        Grey or RGB image (y, x[, channel]) for the pictures in a notebook.
    scores
        The model's confidence in each predicted object: id -> score, or an array
        with one per id, the lowest id first, such as StarDist's
        ``details["prob"]``. Objects may lack one.

    Returns
    -------
    PairResult
        With ``.objects``, ``.metrics``, ``.by_class`` and ``.confusion``.

    Raises
    ------
    LabelError
        For arrays that are no label images or masked, do not fit together, or hold ids
        without a class; for scores or micrometres per pixel that are no numbers.

    Examples
    --------
    >>> import numpy as np
    >>> reference = np.array([[1, 1, 0, 2]])
    >>> prediction = np.array([[5, 5, 0, 0]])
    >>> result = evaluate_pair(reference, prediction)
    >>> result.objects["status"].tolist()
    ['TP', 'FN', 'TP']
    """
    odd: list[Finding] = []
    reference, prediction = (
        _numbered(labels, side, odd, classes)
        for labels, side, classes in (
            (reference, "reference", reference_classes),
            (prediction, "prediction", prediction_classes),
        )
    )
    _check_image(image, reference)
    found = engine.evaluate_pair(
        reference,
        prediction,
        reference_classes=_named(reference, reference_classes),
        prediction_classes=_named(prediction, prediction_classes),
        ambiguous=ambiguous,
        settings=settings,
        mpp=mpp,
        class_names=class_names,
        scores=_scores_of(scores, prediction),
    )
    parts = {own.name: getattr(found, own.name) for own in fields(Evaluation)}
    return PairResult(**parts, image=image, findings=_findings_table(odd))


def compare(
    reference: ArrayLike,
    predictions: Mapping[str, ArrayLike],
    *,
    reference_classes: Classes = None,
    prediction_classes: Mapping[str, Classes] | None = None,
    ambiguous: ArrayLike | None = None,
    settings: EvaluationSettings | None = None,
    mpp: float | None = None,
    class_names: Sequence[str] | None = None,
    image: ArrayLike | None = None,
    scores: Mapping[str, ObjectScores] | None = None,
) -> Comparison:
    """Evaluate several predictions against one reference.

    Parameters
    ----------
    predictions
        Name -> label image.
    prediction_classes
        Name of the prediction -> its classes.
    scores
        Name of the prediction -> its scores.
    reference, reference_classes, ambiguous, settings, mpp, class_names, image
        As for :func:`evaluate_pair`.
    """
    if not predictions:
        raise PanopticError("there is nothing to compare with: give at least one prediction")
    known, scored = prediction_classes or {}, scores or {}
    return Comparison(
        {
            name: evaluate_pair(
                reference,
                labels,
                reference_classes=reference_classes,
                prediction_classes=known.get(name),
                ambiguous=ambiguous,
                settings=settings,
                mpp=mpp,
                class_names=class_names,
                image=image,
                scores=scored.get(name),
            )
            for name, labels in predictions.items()
        }
    )


def open_cohort(path: str | Path) -> OpenedCohort:
    """Open a cohort folder; see docs/reference/cohorts.md for what can be one.

    Raises
    ------
    CohortError
        For a folder that is no cohort.
    PanopticError
        For a cohort of detections or of several raters.
    """
    from napari_panoptic.io.cohorts.nuclei import open_cohort as find
    from napari_panoptic.io.cohorts.tasks import task_of

    if (task := task_of(path)) is not Task.NUCLEI:
        raise PanopticError(
            f"this cohort is about {task}; use 'napari-panoptic evaluate' for it", path=Path(path)
        )
    return OpenedCohort(find(path))


def view(
    reference: ArrayLike | str | Path,
    predictions: Mapping[str, ArrayLike] | None = None,
    *,
    image: ArrayLike | None = None,
    reference_classes: Classes = None,
    prediction_classes: Mapping[str, Classes] | None = None,
    ambiguous: ArrayLike | None = None,
    mpp: float | None = None,
    scores: Mapping[str, ObjectScores] | None = None,
) -> Any:
    """Open the window on arrays, or on a cohort folder.

    In a script the call returns when the window is closed; in a notebook with
    a Qt event loop (``%gui qt``) it returns immediately.

    Parameters
    ----------
    reference
        The annotation as a label image, or the path of a cohort folder.
    predictions
        Name -> label image.
    image, reference_classes, prediction_classes, ambiguous, mpp, scores
        As for :func:`compare`. A warning reports arrays that are read as masks.

    Returns
    -------
    napari.Viewer

    Raises
    ------
    PanopticError
        If napari or Qt is not installed, or the arrays do not fit together.
    """
    from napari_panoptic.io.cohorts.comparison import Labels, LabelsComparison

    show = _window()
    if isinstance(reference, (str, Path)):
        return show(Path(reference), None)
    classes, scored = prediction_classes or {}, scores or {}
    odd: list[Finding] = []
    truth = _numbered(reference, "reference", odd, reference_classes)
    numbered = {
        name: _numbered(labels, f"prediction '{name}'", odd, classes.get(name))
        for name, labels in (predictions or {}).items()
    }
    for finding in odd:
        warnings.warn(finding.message, stacklevel=2)
    arrays = LabelsComparison(
        Labels(truth, _or_only(reference_classes)),
        {
            name: Labels(
                array,
                _or_only(classes.get(name)),
                _by_id(_scores_of(scored.get(name), array)),
            )
            for name, array in numbered.items()
        },
        image=None if image is None else np.asarray(image),
        ambiguous=None if ambiguous is None else checked_mask(ambiguous),
        mpp=mpp,
    )
    folder = tempfile.TemporaryDirectory(prefix="napari-panoptic-", ignore_cleanup_errors=True)
    return show(arrays.write(Path(folder.name)), folder)


def _window() -> Any:
    """Return the function that opens a window, or raise with what to install."""
    try:
        import qtpy.QtWidgets  # noqa: F401, TID251 - only to find out whether there is a Qt

        from napari_panoptic.viewer.launch import show_folder
    except Exception as error:
        # qtpy has an error of its own for a missing binding.
        raise PanopticError(
            f"the window needs napari and Qt, which cannot be imported ({error}); install them "
            'with: pip install "napari-panoptic[pyqt6]"'
        ) from error
    return show_folder


def _or_only(classes: Classes) -> Mapping[int, str] | str:
    return ONLY_CLASS if classes is None else classes


def _numbered(
    labels: ArrayLike, side: str, odd: list[Finding], classes: Classes
) -> NDArray[np.integer]:
    """Return a checked label image; report the pieces of a mask, which become objects."""
    is_boolean = plain_array(labels, side).dtype == np.bool_
    array = checked_array(labels, side)
    if not is_boolean and not _is_mask(array, classes):
        return array
    pieces = components((array > 0).astype(np.uint8))
    n = int(pieces.max(initial=0))
    if n > 1:
        kind = "is boolean" if is_boolean else f"holds no number but {_WHITE}, as masks do"
        cure = "" if is_boolean else f"; if it is one object, name the class of {_WHITE}"
        message = f"the {side} {kind}: its {n} connected components became the objects{cure}"
        odd.append(Finding(FindingKind.FALLBACK, message, count=n))
    return pieces if is_boolean or n > 1 else array


def _is_mask(labels: NDArray[np.integer], classes: Classes) -> bool:
    """Return whether the only object of an array is 255, and no class is named for it."""
    is_named = isinstance(classes, Mapping) and _WHITE in classes
    is_white = not is_named and labels.max(initial=0) == _WHITE
    return bool(is_white) and not np.any((labels > 0) & (labels < _WHITE))


def _named(labels: NDArray[np.integer], classes: Classes) -> Mapping[int, str]:
    """Return id -> class name for every id of an array."""
    if classes is not None and not isinstance(classes, str):
        return classes
    ids = np.unique(labels)
    return {int(id_): classes or ONLY_CLASS for id_ in ids.tolist() if id_ > 0}


def _scores_of(scores: ObjectScores, labels: ArrayLike) -> Scores | None:
    """Return the scores of the objects of an array."""
    if scores is None:
        return None
    try:
        if isinstance(scores, Mapping):
            listed = sorted((int(id_), float(score)) for id_, score in scores.items())
            return Scores(
                np.array([id_ for id_, _ in listed], np.int64),
                np.array([score for _, score in listed], np.float64),
            )
        values = np.ma.filled(np.ma.asarray(scores, np.float64), np.nan)
    except (TypeError, ValueError, OverflowError) as error:
        raise LabelError(
            f"expected scores as {{id: score}} or an array of numbers, found: {error}"
        ) from error
    ids = np.unique(np.asarray(labels)).astype(np.int64)
    ids = ids[ids > 0]
    highest = int(ids.max(initial=0))
    if values.shape == (highest,):  # of 1, 2 …, some of which may be covered by others
        return Scores(np.arange(1, highest + 1), values)
    if values.shape != ids.shape:
        raise LabelError(
            f"expected one score for each of the {len(ids)} predicted objects, found an array of "
            f"shape {values.shape}; pass {{id: score}} to leave some out"
        )
    return Scores(ids, values)


def _by_id(scores: Scores | None) -> dict[int, float]:
    """Return id -> score of the objects that have one."""
    if scores is None:
        return {}
    listed = zip(scores.ids.tolist(), scores.values.tolist(), strict=True)
    return {id_: score for id_, score in listed if not np.isnan(score)}


def _check_image(image: ArrayLike | None, reference: ArrayLike) -> None:
    if image is None:
        return
    found, expected = np.shape(image), np.shape(reference)
    if found[:2] != expected:
        raise LabelError(
            f"the image has the shape {found}, the reference {expected}: both must cover the same "
            "pixels"
        )


def _findings_table(findings: Sequence[Any]) -> pd.DataFrame:
    import pandas as pd

    columns = ("kind", "message", "region", "team", "path")
    rows = [
        (str(f.kind), f.message, f.region, f.team, None if f.path is None else str(f.path))
        for f in findings
    ]
    return pd.DataFrame(rows, columns=list(columns))


def _metrics_html(results: Mapping[str, PairResult]) -> str:
    import pandas as pd

    rows = []
    for team, result in results.items():
        counts = result.objects["status"].where(result.objects["side"] == "reference")
        predicted = result.objects["status"].where(result.objects["side"] == "prediction")
        row: dict[str, Any] = {"team": team} if team else {}
        row |= {
            "TP": int((counts == "TP").sum()),
            "FN": int((counts == "FN").sum()),
            "FP": int((predicted == "FP").sum()),
            "misclassified": int((counts == "misclassified").sum()),
        }
        rows.append({**row, **{name: result.metrics[name] for name in _SHOWN}})
    table = pd.DataFrame(rows)
    return str(table.to_html(index=False, float_format="{:.3f}".format, border=0, na_rep="–"))


def _pictures_html(result: PairResult, failures: pd.DataFrame) -> str:
    """Draw failures as small pictures with both outlines."""
    from napari_panoptic.display.crops import CropSource
    from napari_panoptic.io.cohorts.comparison import rgb
    from napari_panoptic.io.images.slides import SlideImage
    from napari_panoptic.report.nuclei.gallery import SIZE_PX, failures_in, pictures_of
    from napari_panoptic.tables.markup import data_uri

    if failures.empty:
        return "<p>No failures.</p>"
    mpp, image = result.pair.mpp, None
    if result.image is not None:
        pixels = rgb(result.image)
        image = SlideImage((pixels,), mpp, (), pixels.shape[:2])
    figures = []
    source = CropSource.of(image, result)
    for picture in pictures_of(source, failures_in(failures), mpp):
        failure = picture.failure
        says = f"{failure.status} {failure.cause} {failure.class_name} {failure.id}"
        figures.append(
            '<figure style="display:inline-block;margin:4px;text-align:center">'
            f'<img width="{SIZE_PX // 2}" alt="{html.escape(says)}" '
            f'src="{data_uri("image/jpeg", picture.jpeg)}">'
            f"<figcaption>{html.escape(says)}</figcaption>"
            "</figure>"
        )
    return f"<p>Largest failures</p>{''.join(figures)}"
