"""Plant errors in a cohort's annotation, and measure how well suspects find them.

``python -m benchmarks.suspects COHORT`` needs no display. For cleanlab's scores on the same
errors, install ``requirements-cleanlab.txt`` in an environment of its own and give its interpreter:
``--cleanlab DIR/bin/python``.
"""

import argparse
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.planted import KINDS, Found, Planted, Ranked, choose, plant, ranked, rate
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.live.snapshots import RegionSnapshot, load_region
from napari_panoptic.nuclei.evaluate import evaluate
from napari_panoptic.questions.engines.suspects import (
    NO_MEMBER,
    Agreement,
    SuspectKind,
    agreement,
    find_suspects,
)
from napari_panoptic.values.cohort import Cohort
from napari_panoptic.values.labels import LabelImage, LabelPair
from napari_panoptic.values.settings import EvaluationSettings, Restoration

PEER = Path(__file__).with_name("peers_cleanlab.py")


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


def by_cleanlab(python: Path, regions: Sequence[Agreement]) -> list[Ranked]:
    """Rank objects by cleanlab's scores, with the proposals of two or more teams as predictions."""
    labels, predictions, orders = [], [], []
    for own in regions:
        boxes = own.reference.bbox[:, [1, 0, 3, 2]].astype(float)
        labels.append(
            {"bboxes": boxes.tolist(), "labels": (own.reference.class_index - 1).tolist()}
        )
        per_class, order = _boxes(own)
        predictions.append(per_class)
        orders.append(order)
    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "in", Path(folder) / "out"
        source.write_text(json.dumps([labels, predictions]))
        subprocess.run([python, PEER, source, target], check=True)  # noqa: S603 the user named it
        scores = json.loads(target.read_text())
    found = []
    for place, own in enumerate(regions):
        for kind in (SuspectKind.BADLY_LOCATED, SuspectKind.WRONG_CLASS):
            for row, score in enumerate(scores[kind.value][place]):
                y, x = own.reference.centroid_yx_px[row].tolist()
                id_ = int(own.reference.ids[row])
                found.append(Ranked(own.region, kind, float(np.nan_to_num(score)), id_, (y, x)))
        overlooked = scores[SuspectKind.OVERLOOKED.value][place]
        for (y, x), score in zip(orders[place], overlooked, strict=True):
            if np.isfinite(score):
                kind = SuspectKind.OVERLOOKED
                found.append(Ranked(own.region, kind, float(score), None, (y, x)))
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


def main() -> None:
    """Print precision among the first k, and AUROC, by seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cohort", type=Path)
    parser.add_argument("--cleanlab", type=Path, help="Python of an environment with cleanlab")
    parser.add_argument("--share", type=float, default=0.05, help="of objects (default: 0.05)")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    cohort = open_cohort(options.cohort)
    teams = [team.name for team in cohort.competing_teams]
    for restoration in (Restoration.BORDER_DILATED, Restoration.BORDER_REMOVED):
        regions = regions_of(cohort, restoration)
        results: dict[str, list[Mapping[str, Found]]] = {}
        for seed in range(options.seeds):
            planted, found = with_errors(regions, teams, options.share, seed)
            lists = {"napari-panoptic": ranked(find_suspects(found))}
            if options.cleanlab is not None:
                lists["cleanlab"] = by_cleanlab(options.cleanlab, found)
            for name, suspects in lists.items():
                rated = {"all": rate(planted, suspects)}
                rated |= {kind.value: rate(planted, suspects, [kind]) for kind in KINDS}
                results.setdefault(name, []).append(rated)
        print(f"\n{restoration}, {options.share:.0%} of objects, {options.seeds} seeds")
        print(
            "list             errors          n    precision: mean, lowest    AUROC: mean, lowest"
        )
        for name, rated_seeds in results.items():
            for kind in rated_seeds[0]:
                own = [rated[kind] for rated in rated_seeds]
                precision, auroc = [f.precision for f in own], [f.auroc for f in own]
                print(
                    f"{name:16} {kind:14} {own[0].planted:4}    {mean(precision):.3f}  "
                    f"{min(precision):.3f}               {mean(auroc):.3f}  {min(auroc):.3f}"
                )


if __name__ == "__main__":
    main()
