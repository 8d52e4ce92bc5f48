"""Find the objects that look most like given ones, and whether they fail too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_panoptic.common.errors import SettingsError
from napari_panoptic.common.progress import UNWATCHED, Progress
from napari_panoptic.common.text import counted, english_list
from napari_panoptic.explain.failures import FailureName, FailureSet
from napari_panoptic.features.known import FEATURES, chosen_features, text_of
from napari_panoptic.io.images.slides import SlideImage
from napari_panoptic.nuclei.regions.looks import Teams
from napari_panoptic.questions.answer import Answer, AnswerTable, UnansweredError
from napari_panoptic.questions.engines.cohort_objects import (
    CohortObjects,
    MeasuredRegion,
    is_failure,
    joined_objects,
    measured_region,
)
from napari_panoptic.questions.engines.slices import SIGNIFICANCE
from napari_panoptic.questions.question import (
    Gathered,
    Question,
    option,
    whole_number,
    why_nothing,
)
from napari_panoptic.statistics.bootstrap import rate_bands
from napari_panoptic.statistics.max_t import PERMUTATIONS, SEED, SetFamily, max_t
from napari_panoptic.tables import columns
from napari_panoptic.tables.figures import ratio
from napari_panoptic.values.cohort import Cohort, Region
from napari_panoptic.values.links import LinkError, LinkMaker, ObjectLink, check_link
from napari_panoptic.values.reading import Reading
from napari_panoptic.values.settings import EvaluationSettings
from napari_panoptic.values.vocabulary import Side, Status

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]
NEIGHBOURS = 20
WORDS = ("class", "touching")
"""Features that are no numbers."""
COMPARED = tuple(
    key
    for key, own in FEATURES.items()
    if key not in (*WORDS, "score", "frame_distance_px", "local_density_px")
)
"""The features that are compared unless others are chosen."""
TO_SD = 1.4826
"""Standard deviations per median absolute deviation, of a normal distribution."""
LEAST_OF_PATIENT = 10
"""With fewer objects of a patient, the cohort's scale is taken."""
LARGEST = 5.0
"""Standardised values beyond this count as this, so that one odd figure does not decide alone."""
NAMED = 2
"""Number of the closest and of the farthest features that a row names."""

LOOK_ALIKES = columns.TableSpec(
    "look-alikes.csv",
    "look-alike, the nearest first",
    [
        columns.whole("rank", "#"),
        columns.number(
            "distance",
            write=lambda value: ratio(value, 2),
            about="root of the mean squared difference of standardised features from the most "
            "similar given object",
        ),
        columns.name_column("region"),
        columns.name_column("patient"),
        columns.unshown("side"),
        columns.whole("id"),
        columns.words("status"),
        columns.words("cause", about="of FN and FP"),
        columns.name_column("class"),
        columns.name_column("closest", about=f"the {NAMED} features that differ least"),
        columns.name_column("farthest", about=f"the {NAMED} that differ most"),
        columns.unshown("seed_region", "seed_id", about="of the most similar given object"),
        columns.link_column(),
    ],
)

_USUAL = EvaluationSettings().disentangled.replaced(distances=False)


class Scale(StrEnum):
    """Over which objects features are standardised."""

    PATIENT = "patient"
    COHORT = "cohort"


class Among(StrEnum):
    """Which objects are look-alikes."""

    OTHERS = "others"  # those of other patients than the given object
    ALL = "all"


def read_links(text: str) -> tuple[ObjectLink, ...]:
    """Read links between white space.

    Raises
    ------
    LinkError
        For a text that is no link.
    """
    return tuple(ObjectLink.parse(word) for word in text.split())


def read_features(text: str) -> tuple[str, ...]:
    """Read names of features between commas.

    Raises
    ------
    SettingsError
        For unknown features, and those that are no numbers.
    """
    names = chosen_features(text.split(","))
    if words := [name for name in names if name in WORDS]:
        raise SettingsError(f"expected features that are numbers, found {english_list(words)}")
    return names


@dataclass(frozen=True, kw_only=True)
class LookAlikes(Question):
    """The objects that look most like given ones."""

    title = "Look-alikes"
    about = (
        "Find the objects that look most like those of links, by features of shape, stain and "
        "surroundings, and whether they fail too. Write them to look-alikes.csv, the nearest "
        "first. Exit status: 0 done, 1 nothing could be evaluated, 2 wrong arguments."
    )
    verb = "Find"
    hint = "Paste links to objects and press “Find” to see which objects look alike."
    tables = (LOOK_ALIKES,)
    has_score = False
    reads_image = True
    too_large = "the region is too large to be held, which features need; its objects are left out"

    team: str | None = option(
        "team whose predictions are evaluated (default: that of the links)", None, metavar="T"
    )
    links: tuple[ObjectLink, ...] = option(
        "link to objects whose look-alikes are wanted; several times for more",
        (),
        read=read_links,
        word="link",
        metavar="LINK",
        is_repeated=True,
        placeholder="Links to objects",
    )
    features: tuple[str, ...] = option(
        f"compare only these, separated by commas (default: {','.join(COMPARED)})",
        COMPARED,
        read=read_features,
        metavar="NAMES",
    )
    neighbours: int = option(
        "number of look-alikes (default: %(default)s)",
        NEIGHBOURS,
        read=whole_number(1),
        metavar="N",
        is_late=True,
    )
    among: str = option(
        "look-alikes among other patients than that of the given object, or all "
        "(default: %(default)s)",
        str(Among.OTHERS),
        choices=tuple(map(str, Among)),
        is_late=True,
    )
    scale: str = option(
        "standardise features by median and MAD of each patient, or of the cohort "
        "(default: %(default)s)",
        str(Scale.PATIENT),
        choices=tuple(map(str, Scale)),
        is_late=True,
    )

    @property
    def matching(self) -> EvaluationSettings:
        """The settings of the links if they have some, unless others are given."""
        given, linked = super().matching, self._linked_settings
        return linked[0] if linked and given == _USUAL else given

    @property
    def _linked_settings(self) -> list[EvaluationSettings]:
        """The settings of links; a link says what differs from the usual ones, if anything."""
        found = [link.settings.disentangled.replaced(distances=False) for link in self.links]
        return list(dict.fromkeys(own for own in found if own != _USUAL))

    def reading(self, cohort: Cohort) -> Reading:
        """Return which predictions are read: those of the links, unless others are given."""
        linked = next((link.source for link in self.links if link.source is not None), None)
        teams = self.teams_read(cohort)
        return Reading(self.matching, self.source or linked, teams, self.held_up_to_px)

    def teams_read(self, cohort: Cohort) -> tuple[str, ...]:
        """Return the team, given or that of the links."""
        names = (self.team, *(link.team for link in self.links))
        return tuple(dict.fromkeys(cohort.checked_team(name) for name in names if name))

    def why_not(self, cohort: Cohort) -> str:
        """Return what is missing, or what contradicts the links."""
        if not any(link.objects for link in self.links):
            return "it needs links to objects (--link); copy one from an object"
        try:
            for link in self.links:
                check_link(link, cohort)
        except LinkError as error:
            return str(error)
        sources = {link.source for link in self.links} | {self.source}
        alternatives: dict[str, list[Any]] = {
            "team": list(self.teams_read(cohort)),
            "side": list(dict.fromkeys(side for link in self.links for side, _ in link.objects)),
            "settings": list(dict.fromkeys([*self._linked_settings, self.matching])),
            "format of predictions": sorted(str(source) for source in sources - {None}),
        }
        for what, found in alternatives.items():
            if len(found) > 1:
                names = f" ({english_list(found)})" if what != "settings" else ""
                return (
                    f"links and options contradict each other: expected one {what}, found "
                    f"{len(found)}{names}; leave out what differs"
                )
        return "" if alternatives["team"] else "the links name no team; choose it (--team)"

    @property
    def searched_side(self) -> Side:
        """The side of the given objects."""
        return next(side for link in self.links for side, _ in link.objects)

    def look(self, region: Region, teams: Teams, image: SlideImage | None) -> MeasuredRegion | None:
        """Measure the objects of both sides."""
        ((team, found),) = teams.items()
        if found.evaluation is None:
            return None
        names = ("class", *self.features)
        return measured_region(found.evaluation, region, team, image, names)

    def joined(self, cohort: Cohort, gathered: Gathered) -> CohortObjects:
        """Return the objects of all regions."""
        (team,) = self.teams_read(cohort)
        objects = joined_objects(team, gathered.parts, gathered.findings)
        if objects.frame.empty:
            findings = (*cohort.findings, *objects.findings)
            raise UnansweredError(why_nothing(cohort, (team,)), findings)
        return objects

    def answered(
        self, cohort: Cohort, gathered: CohortObjects, progress: Progress = UNWATCHED
    ) -> Answer:
        """Find the nearest objects, and compare how often they fail."""
        frame, side = gathered.of_side(self.searched_side), self.searched_side
        seeds, n_missing = self._seeds(cohort, frame)
        if not len(seeds):
            why = "no object of the links counts: they are ignored, in no region, or not read"
            raise UnansweredError(why, gathered.findings)
        patients = frame["patient"].to_numpy()
        values = standardised(frame[self._numbers(gathered)], patients, Scale(self.scale))
        near = nearest(
            values.numbers, seeds, patients if self.among == Among.OTHERS else None, self.neighbours
        )
        fails = is_failure(frame, side)
        found = more_than_usual(near.rows, near.candidates, fails, patients, progress)
        links = LinkMaker.of(cohort, self.matching, self.reading(cohort).source)
        names = [
            FailureName(gathered.team, str(region), side, int(id_))
            for region, id_ in zip(frame["region"], frame["id"], strict=True)
        ]
        rows = [
            {
                "rank": rank + 1,
                "distance": near.distances[rank],
                **frame.loc[row, ["region", "patient", "side", "id", "status", "cause"]],
                "class": frame.at[row, "class"],
                **values.words(int(row), int(seed)),
                "seed_region": frame.at[seed, "region"],
                "seed_id": frame.at[seed, "id"],
                "link": links.to([names[row]]),
            }
            for rank, (row, seed) in enumerate(zip(near.rows, near.seeds, strict=True))
        ]
        causes = _causes(frame.iloc[near.rows[fails[near.rows]]])
        return Answer(
            self._headline(found, causes, " too" if fails[seeds].all() else ""),
            tuple(self._notes(values, len(seeds), n_missing)),
            (
                AnswerTable(
                    LOOK_ALIKES,
                    LOOK_ALIKES.frame(rows),
                    lambda row: FailureSet(
                        f"look-alikes of {gathered.team}", frozenset({names[near.rows[row]]})
                    ),
                    has_others=True,
                    is_of_objects=True,
                ),
            ),
            (),
            self.record(
                cohort,
                gathered.findings,
                team=gathered.team,
                side=side,
                seeds=[links.to([names[seed]]) for seed in seeds],
                seeds_missing=n_missing,
                protocol=self.protocol,
                settings=self.matching.as_record(),
                features=values.names,
                features_without_use=values.useless,
                missing_values=values.missing,
                **{name: getattr(self, name) for name in ("neighbours", "among", "scale")},
                **asdict(found),
                causes=dict(causes),
                permutations=PERMUTATIONS,
                seed=SEED,
            ),
        )

    def _seeds(self, cohort: Cohort, frame: pd.DataFrame) -> tuple[NDArray[np.int64], int]:
        """Return the rows of the given objects, and the number of those that have none."""
        wanted = {
            (check_link(link, cohort).region, id_) for link in self.links for _, id_ in link.objects
        }
        places = zip(frame["region"], frame["id"], strict=True)
        rows = np.flatnonzero([place in wanted for place in places])
        return rows, len(wanted) - len(rows)

    def _numbers(self, objects: CohortObjects) -> list[str]:
        """Return the features that are compared: those chosen, and numbers of plugins."""
        return [name for name in objects.covariates if objects.frame[name].dtype.kind == "f"]

    def _headline(self, found: Similar, causes: Sequence[tuple[str, int]], too: str) -> str:
        is_reference = self.searched_side is Side.REFERENCE
        of_whom = " of other patients" if self.among == Among.OTHERS else ""
        what, verb = ("nuclei", "fail") if is_reference else ("predictions", "are FP")
        most = f", most often {causes[0][0]}" if causes else ""
        usual = "" if found.is_more else "; this is no more than usual"
        return (
            f"{found.failures} of the {found.objects} {what}{of_whom} that look most alike "
            f"{verb}{too} (all: {_percent(found.rate_of_all)}){most}{usual}. 95 % interval: "
            f"{_percent(found.low)} to {_percent(found.high)}."
        )

    def _notes(self, values: Standardised, n_seeds: int, n_missing: int) -> Iterator[str]:
        compared = counted(len(values.names), "feature")
        yield f"Compared with {counted(n_seeds, 'object')} of the links by {compared}."
        if n_missing:
            yield f"Objects of the links that do not count and are left out: {n_missing}."
        if values.missing:
            yield f"Missing values, which count as the median: {values.missing}."
        if values.useless:
            yield f"Undefined, or the same for all: {english_list(list(values.useless), limit=99)}."


# --- distances ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Standardised:
    """Features of objects on one scale."""

    #: float64 (n, f), without NaN.
    numbers: FloatArray
    names: tuple[str, ...]
    #: Features that are undefined or the same for all objects, and are left out.
    useless: tuple[str, ...]
    #: Number of undefined values of the others.
    missing: int

    def words(self, row: int, seed: int) -> dict[str, str]:
        """Return the features in which two objects differ least and most, for a row."""
        apart = np.abs(self.numbers[row] - self.numbers[seed])
        names = [text_of(self.names[k]).header for k in np.argsort(apart, kind="stable")]
        return {
            "closest": ", ".join(names[:NAMED]),
            "farthest": ", ".join(names[: -1 - NAMED : -1]),
        }


def standardised(frame: pd.DataFrame, patients: NDArray[Any], scale: Scale) -> Standardised:
    """Return features as differences from the median, in robust standard deviations.

    Areas, lengths and densities are compared as logarithms. The scale is 1.4826 times the median
    absolute deviation (MAD) of the patient, or that of the cohort if the patient's is 0 or it has
    fewer than ten objects. Beyond 5, values count as 5; undefined ones count as the median.

    Parameters
    ----------
    frame
        A column of numbers per feature.
    patients
        (n,): of each object.
    scale
        Whether median and MAD are those of each patient.
    """
    raw = np.column_stack([_logarithms(str(name), frame[name].to_numpy()) for name in frame])
    _, group = np.unique(patients, return_inverse=True)
    if scale is Scale.COHORT:
        group = np.zeros_like(group)
    middle, spread = _median_and_mad(raw)
    is_used = spread > 0
    raw, spread = raw[:, is_used], spread[is_used]
    numbers = np.full_like(raw, np.nan)
    for number in range(int(group.max(initial=-1)) + 1):
        rows = np.flatnonzero(group == number)
        middle, own = _median_and_mad(raw[rows])
        is_wide = (own > 0) & (len(rows) >= LEAST_OF_PATIENT)
        numbers[rows] = (raw[rows] - middle) / np.where(is_wide, own, spread)
    names = np.array([str(name) for name in frame], object)
    return Standardised(
        np.clip(np.nan_to_num(numbers, nan=0.0), -LARGEST, LARGEST),
        tuple(names[is_used]),
        tuple(names[~is_used]),
        int(np.isnan(raw).sum()),
    )


def _logarithms(name: str, values: FloatArray) -> FloatArray:
    logs: FloatArray = np.log1p(values) if text_of(name).px_power else values
    return logs


def _median_and_mad(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return median and scaled MAD of each column; NaN and 0 for one without values."""
    middle, spread = np.full(values.shape[1], np.nan), np.zeros(values.shape[1])
    for k, column in enumerate(values.T):
        if len(known := column[~np.isnan(column)]):
            middle[k] = np.median(known)
            spread[k] = TO_SD * np.median(np.abs(known - middle[k]))
    return middle, spread


@dataclass(frozen=True, eq=False)
class Nearest:
    """The objects nearest to any of the given ones."""

    #: int64 (k,): their rows, the nearest first, and those of the given object nearest to each.
    rows: NDArray[np.int64]
    seeds: NDArray[np.int64]
    distances: FloatArray  # (k,)
    #: int64 (m,): the rows of all objects that could be among them.
    candidates: NDArray[np.int64]


def nearest(
    numbers: FloatArray, seeds: NDArray[np.int64], patients: NDArray[Any] | None, most: int
) -> Nearest:
    """Return the objects nearest to any of the given ones, which are not among them.

    Parameters
    ----------
    numbers
        (n, f): standardised features. The distance is the root of the mean squared difference.
    seeds
        (s,): rows of the given objects.
    patients
        (n,): of each object, if only those of other patients than the given one are wanted.
    most
        Number of objects.
    """
    best = np.full(len(numbers), np.inf)
    seed_of = np.zeros(len(numbers), np.int64)
    for seed in seeds.tolist():
        distances = np.sqrt(((numbers - numbers[seed]) ** 2).mean(axis=1))
        if patients is not None:
            distances[patients == patients[seed]] = np.inf
        is_nearer = distances < best
        best[is_nearer], seed_of[is_nearer] = distances[is_nearer], seed
    best[seeds] = np.inf
    candidates = np.flatnonzero(np.isfinite(best))
    rows = candidates[np.argsort(best[candidates], kind="stable")[:most]]
    return Nearest(rows, seed_of[rows], best[rows], candidates)


# --- how often they fail ------------------------------------------------------------------------


@dataclass(frozen=True)
class Similar:
    """How often look-alikes fail, and all objects that could be among them."""

    objects: int
    failures: int
    rate: float
    #: 95 % band of the rate; see `napari_panoptic.statistics.bootstrap.rate_bands`.
    low: float
    high: float
    rate_of_all: float
    #: One-sided, by permutations within patients, as of a single slice.
    p: float
    is_more: bool


def more_than_usual(
    rows: NDArray[np.int64],
    candidates: NDArray[np.int64],
    fails: NDArray[np.bool_],
    patients: NDArray[Any],
    progress: Progress = UNWATCHED,
) -> Similar:
    """Compare how often some objects fail with all candidates, within patients.

    Parameters
    ----------
    rows, candidates
        Rows of the objects, and of all that could be among them.
    fails, patients
        (n,): of each object.
    progress
        Checked for cancellation.
    """
    from scipy.sparse import csr_array

    if not len(rows):
        raise UnansweredError("there is no other object of another patient (--among all)")
    _, strata = np.unique(patients[candidates], return_inverse=True)
    inside = np.isin(candidates, rows)
    family = SetFamily(inside[:, None].astype(np.int32), csr_array(np.array([[0, 1]])))
    p = float(max_t(family, fails[candidates], strata, progress=progress).p[0])
    places = strata[inside]
    used = np.unique(places)
    objects = np.bincount(places)[used]
    events = np.bincount(places, fails[candidates][inside])[used].astype(np.int64)
    band = rate_bands(events[None], objects[None])
    rate, of_all = float(fails[rows].mean()), float(fails[candidates].mean())
    return Similar(
        len(rows),
        int(fails[rows].sum()),
        rate,
        float(band.low[0]),
        float(band.high[0]),
        of_all,
        p,
        p <= SIGNIFICANCE and rate > of_all,
    )


def _causes(failures: pd.DataFrame) -> list[tuple[str, int]]:
    """Return the causes of failures, the most frequent first; misclassified counts as one."""
    words = (
        status if status == Status.MISCLASSIFIED else cause
        for status, cause in zip(failures["status"], failures["cause"], strict=True)
    )
    return Counter(map(str, words)).most_common()


def _percent(rate: float) -> str:
    return f"{100 * rate:.0f} %"
