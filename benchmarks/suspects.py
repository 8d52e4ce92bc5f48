"""Errors planted in a cohort's annotation: how well suspects find them, what strata of them add."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.stats import mannwhitneyu

from benchmarks.cases import MONUSAC
from benchmarks.measure import print_table, repeated, temporary
from benchmarks.reviews import STRATIFIED, Truth, coverage, truth_of
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.snapshots import RegionSnapshot, load_region
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.questions.engines.suspects import (
    NO_MEMBER,
    Agreement,
    Suspect,
    SuspectKind,
    agreement,
    find_suspects,
)
from napari_panoptic.review.plan.corrected import QUANTITIES
from napari_panoptic.review.plan.design import draw, rows_of
from napari_panoptic.review.plan.suspects import with_suspects
from napari_panoptic.review.plan.units import ItemKind, Units, joined, tile_name, units_of
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import EvaluationSettings, Restoration
from napari_panoptic.values.vocabulary import Side

KINDS = (SuspectKind.OVERLOOKED, SuspectKind.BADLY_LOCATED, SuspectKind.WRONG_CLASS)
PEER = Path(__file__).with_name("peers_cleanlab.py")
PREDICTION, NEITHER = 1, 2  # positions in DECIDED


@dataclass(frozen=True)
class Planted:
    """An annotation with planted errors.

    `errors` maps the id of an object to the kind of its error; `removed` has the pixels, as
    coordinates (2, k), of the objects that were removed.
    """

    labels: LabelImage
    errors: Mapping[int, SuspectKind]
    removed: Mapping[int, NDArray[np.int64]]


def plant(labels: LabelImage, ids: Sequence[int], kinds: Sequence[SuspectKind]) -> Planted:
    """Remove, dilate or swap the class of some objects.

    A dilation adds half of the radius of a disk of the same area (at least 2 px), over the
    background only: the area more than doubles where there is room.
    """
    image = labels.id_image()
    classes = dict(zip(labels.ids.tolist(), labels.class_names_of_objects(), strict=True))
    removed = {}
    for id_, kind in zip(ids, kinds, strict=True):
        own = image == id_
        if kind is SuspectKind.OVERLOOKED:
            removed[id_] = np.array(np.nonzero(own))
            image[own] = 0
        elif kind is SuspectKind.BADLY_LOCATED:
            image[_grown(image, own)] = id_
        else:
            place = labels.class_names.index(classes[id_])
            classes[id_] = labels.class_names[(place + 1) % len(labels.class_names)]
    planted = LabelImage.from_array(image, classes, labels.class_names)
    return Planted(planted, dict(zip(ids, kinds, strict=True)), removed)


def choose(
    regions: Sequence[LabelImage], share: float, seed: int
) -> list[tuple[list[int], list[SuspectKind]]]:
    """Choose objects of all regions and a kind of error for each, in equal numbers.

    Objects of fewer than 30 px are not chosen, and none is dilated that has no room to grow by
    half.
    """
    rng = np.random.default_rng(seed)
    objects = [(k, int(id_)) for k, labels in enumerate(regions) for id_ in labels.ids]
    rng.shuffle(objects)
    images = [labels.id_image() for labels in regions]
    wanted = round(share * len(objects))
    chosen: list[tuple[list[int], list[SuspectKind]]] = [([], []) for _ in regions]
    n = 0
    for place, id_ in objects:
        kind = KINDS[n % len(KINDS)]
        own = images[place] == id_
        if n == wanted or own.sum() < 30:
            continue
        if kind is SuspectKind.BADLY_LOCATED and _grown(images[place], own).sum() < 1.5 * own.sum():
            continue
        chosen[place][0].append(id_)
        chosen[place][1].append(kind)
        n += 1
    return chosen


def _grown(image: NDArray[np.int64], own: NDArray[np.bool_]) -> NDArray[np.bool_]:
    distance = max(2.0, 0.5 * float(np.sqrt(own.sum() / np.pi)))
    near = ndimage.distance_transform_edt(~own) <= distance
    grown: NDArray[np.bool_] = own | (near & (image == 0))
    return grown


@dataclass(frozen=True)
class Found:
    """How well planted errors are found.

    `precision` is the share of planted errors among the first k suspects, k being the number
    of planted errors; `auroc` the probability that an object with a planted error has a higher
    score than one without, half for equal scores. Objects are all reference objects, those that
    were removed, and places that are suspected though nothing was removed there.
    """

    planted: int
    precision: float
    auroc: float


def rate(
    planted: Mapping[str, Planted],
    suspects: Iterable[Suspect],
    kinds: Sequence[SuspectKind] = KINDS,
) -> Found:
    """Compare a list of suspects with the errors planted in each region.

    With only some kinds, errors of the other kinds are left out, and suspects of the other kinds
    too.
    """
    scores: dict[tuple[str, object], float] = {}
    truth: dict[tuple[str, object], bool] = {}
    for region, own in planted.items():
        for id_ in own.labels.ids.tolist():
            if own.errors.get(id_, kinds[0]) in kinds:
                truth[region, id_] = id_ in own.errors
        if SuspectKind.OVERLOOKED in kinds:
            truth |= {(region, id_): True for id_ in own.removed}
    for suspect in suspects:
        if len(kinds) == 1 and suspect.kind not in kinds:
            continue
        unit: tuple[str, object] = suspect.region, suspect.id
        if suspect.side is Side.PREDICTION:
            hit = _removed_at(planted[suspect.region], suspect.centroid_yx_px)
            unit = suspect.region, suspect.centroid_yx_px if hit is None else hit
            truth.setdefault(unit, False)
        if unit in truth:
            scores[unit] = max(scores.get(unit, 0.0), suspect.score)
    is_planted = np.array(list(truth.values()))
    values = np.array([scores.get(unit, 0.0) for unit in truth])
    k = int(is_planted.sum())
    # Of equal scores, those without an error count first.
    first = is_planted[np.lexsort((is_planted, -values))[:k]]
    # The area under the ROC curve.
    wins = mannwhitneyu(values[is_planted], values[~is_planted]).statistic
    return Found(k, float(first.mean()), float(wins / (k * (len(values) - k))))


def _removed_at(planted: Planted, yx: tuple[float, float]) -> int | None:
    y, x = np.rint(yx).astype(int)
    for id_, (rows, columns) in planted.removed.items():
        if np.any((rows == y) & (columns == x)):
            return id_
    return None


# --- suspects -------------------------------------------------------------------------------------


def regions_of(cohort: Cohort, restoration: Restoration) -> list[RegionSnapshot]:
    """Read all regions of a cohort."""
    settings = EvaluationSettings(distances=False, restoration=restoration)
    return [load_region(cohort, region.name, settings) for region in cohort.regions]


def annotation_of(region: RegionSnapshot) -> LabelImage:
    """Return the annotated objects of a region."""
    if region.reference is None:
        raise ValueError(f"region {region.region.name} has no annotation")
    return region.reference


def with_errors(
    regions: Sequence[RegionSnapshot], teams: Sequence[str], share: float, seed: int
) -> tuple[dict[str, Planted], list[Agreement]]:
    """Plant errors in a share of the annotated objects, and compare all regions with it."""
    annotations = [annotation_of(region) for region in regions]
    chosen = choose(annotations, share, seed)
    planted, found = {}, []
    for region, labels, (ids, kinds) in zip(regions, annotations, chosen, strict=True):
        name = region.region.name
        planted[name] = plant(labels, ids, kinds)
        evaluations = {
            team: evaluate(
                LabelPair(planted[name].labels, prediction, region.ambiguous), region.settings
            )
            for team, prediction in region.predictions.items()
            if team in teams
        }
        found.append(agreement(evaluations, patient=region.region.patient, region=name))
    return planted, found


def by_cleanlab(python: Path, regions: Sequence[Agreement]) -> list[Suspect]:
    """Rank objects by cleanlab's scores, with the proposals of two or more teams as predictions."""
    labels, predictions, orders = [], [], []
    for own in regions:
        boxes, classes = (
            own.reference.bbox[:, [1, 0, 3, 2]].astype(float),
            own.reference.class_index,
        )
        labels.append({"bboxes": boxes.tolist(), "labels": (classes - 1).tolist()})
        per_class, order = _boxes(own)
        predictions.append(per_class)
        orders.append(order)
    with temporary() as folder:
        source, target = folder / "in", folder / "out"
        source.write_text(json.dumps([labels, predictions]))
        subprocess.run([python, PEER, source, target], check=True)  # noqa: S603 the user named it
        scores = json.loads(target.read_text())
    found = []
    for place, own in enumerate(regions):
        annotated = own.reference.ids.tolist(), own.reference.centroid_yx_px.tolist()
        for kind in KINDS:
            is_overlooked = kind is SuspectKind.OVERLOOKED
            side = Side.PREDICTION if is_overlooked else Side.REFERENCE
            ids, centroids = (
                (range(len(orders[place])), orders[place]) if is_overlooked else annotated
            )
            for id_, (y, x), score in zip(ids, centroids, scores[kind.value][place], strict=True):
                if np.isfinite(score) or not is_overlooked:
                    of_object = float(np.nan_to_num(score)), own.patient, own.region, side, id_
                    found.append(Suspect(kind, *of_object, "", (), (0, 0, 0, 0), (y, x), ""))
    return found


def _boxes(own: Agreement) -> tuple[list[list[list[float]]], list[tuple[float, float]]]:
    """Return boxes (x0, y0, x1, y1, probability) of proposals by class, and their centroids."""
    per_class: list[list[list[float]]] = [[] for _ in own.class_names]
    centroids: list[list[tuple[float, float]]] = [[] for _ in own.class_names]
    for members in own.members[own.is_shared]:
        at = [(own.predictions[team], row) for team, row in enumerate(members) if row != NO_MEMBER]
        y0, x0, y1, x1 = np.mean([side.bbox[row] for side, row in at], axis=0)
        y, x = np.mean([side.centroid_yx_px[row] for side, row in at], axis=0)
        votes = np.bincount([side.class_index[row] - 1 for side, row in at])
        per_class[int(votes.argmax())].append([x0, y0, x1, y1, votes.max() / len(members)])
        centroids[int(votes.argmax())].append((float(y), float(x)))
    return per_class, [yx for own_class in centroids for yx in own_class]


def suspects(
    cohort: str = MONUSAC, cleanlab: str = "", percent: float = 5.0, seeds: int = 10
) -> None:
    """Precision among the first k suspects, and AUROC, on errors planted in a share of objects.

    With `cleanlab`, the Python of an environment that has requirements-cleanlab.txt, also of
    cleanlab's scores on the same errors.
    """
    opened, rows = open_cohort(Path(cohort)), []
    teams = [team.name for team in opened.competing_teams]
    for restoration in (Restoration.BORDER_DILATED, Restoration.BORDER_REMOVED):
        regions = regions_of(opened, restoration)
        results: dict[tuple[str, str], list[Found]] = {}
        for seed in range(seeds):
            planted, found = with_errors(regions, teams, percent / 100, seed)
            lists = {"napari-panoptic": find_suspects(found)}
            if cleanlab:
                lists["cleanlab"] = by_cleanlab(Path(cleanlab), found)
            for name, own in lists.items():
                for kinds in (KINDS, *((kind,) for kind in KINDS)):
                    rated = rate(planted, own, kinds)
                    key = name, "all" if kinds == KINDS else kinds[0].value
                    results.setdefault(key, []).append(rated)
        for key, each in results.items():
            figures = [f.precision for f in each], [f.auroc for f in each]
            cells = [f"{number:.3f}" for own in figures for number in (mean(own), min(own))]
            rows.append([restoration, *key, each[0].planted, *cells])
    header = ["restoration", "list", "errors", "n"]
    header += ["precision", "lowest", "AUROC", "lowest"]
    print_table(f"{percent:g} % of the objects, {seeds} seeds", header, rows)


# --- strata of suspects -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """The items of one team in an annotation with planted errors, and what is true of them."""

    plain: Units
    refined: Units
    truth: Truth


def cases(
    cohort_path: Path, teams: Sequence[str] = (), *, share: float = 0.05, seed: int = 0
) -> dict[str, Case]:
    """Plant errors in a cohort, and list the items of each team."""
    cohort = open_cohort(cohort_path)
    competing = [team.name for team in cohort.competing_teams]
    dilated = regions_of(cohort, Restoration.BORDER_DILATED)
    planted, found = with_errors(dilated, competing, share, seed)
    suspects = find_suspects(found)
    regions = regions_of(cohort, Restoration.BORDER_REMOVED)
    result = {}
    for team in teams or competing:
        parts = [_of_region(region, planted[region.region.name], team) for region in regions]
        units = joined(cohort.scheme.names, [units for units, _, _ in parts])
        verdict, count = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
        refined = with_suspects(units, suspects)
        result[team] = Case(units, refined, truth_of(units, verdict, count))
    return result


def _of_region(
    region: RegionSnapshot, planted: Planted, team: str
) -> tuple[Units, NDArray[np.int64], NDArray[np.int64]]:
    """Return the items of a region, and the true verdict and count of each."""
    prediction = region.predictions[team]
    evaluation = evaluate(LabelPair(planted.labels, prediction, region.ambiguous), region.settings)
    units = units_of(evaluation, team, region.region.patient, region.region.name)
    verdict, count = np.zeros((2, len(units)), np.int64)
    is_reference = units.reference_class > 0
    for row in np.flatnonzero(is_reference).tolist():
        if int(units.id[row]) in planted.errors:
            # A prediction of the true class at the place of a class that was changed is right.
            is_swap = planted.errors[int(units.id[row])] is SuspectKind.WRONG_CLASS
            is_pair = units.prediction_class[row] > 0
            is_right = is_pair and (not is_swap or units.is_kind(ItemKind.MISCLASSIFIED)[row])
            verdict[row] = PREDICTION if is_right else NEITHER
    image, ids = prediction.id_image(), prediction.ids
    fps = {int(units.id[row]): row for row in np.flatnonzero(units.is_kind(ItemKind.FP)).tolist()}
    tiles = {
        tile_name(units.y_px[row], units.x_px[row]): row
        for row in np.flatnonzero(units.is_kind(ItemKind.BACKGROUND)).tolist()
    }
    for pixels in planted.removed.values():
        seen = image[tuple(pixels)]
        best = int(np.bincount(np.searchsorted(ids, seen[seen > 0]), minlength=1).argmax())
        id_ = int(ids[best]) if (seen > 0).mean() > 0.5 else 0
        place = tile_name(*pixels.mean(axis=1).tolist())
        if id_ in fps:
            verdict[fps[id_]] = PREDICTION
        elif not id_ and place in tiles:
            count[tiles[place]] += 1
    return units, verdict, count


def errors_found(units: Units, truth: Truth, n_items: int, seeds: Sequence[int]) -> float:
    """Return the mean number of wrong annotations among the items of plans.

    A tile with nuclei that lack an outline is one.
    """
    is_wrong = (truth.verdict > 0) | (truth.count > 0)
    each = repeated(lambda seed: is_wrong[rows_of(draw(units, n_items, seed), units)].sum(), seeds)
    return float(each.mean())


def review_suspects(
    cohort: str = MONUSAC, teams: str = "", items: int = 200, reviews: int = 500
) -> None:
    """Plans with and without strata of suspects, where the planted errors are the only ones."""
    rows, seeds = [], range(reviews)
    for team, case in cases(Path(cohort), teams.split(",") if teams else ()).items():
        for name, units in (("usual", case.plain), ("suspects", case.refined)):
            found = coverage(units, case.truth, STRATIFIED, items, seeds)
            n_errors = errors_found(units, case.truth, items, seeds)
            rows.append([team, name, f"{n_errors:.1f}", *found.cells()])
    header = ["team", "strata", "errors found", *QUANTITIES]
    print_table(f"{reviews} reviews of {items} items", header, rows)
