"""Rows of objects of two versions, drawn at random, without images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from napari_panoptic.nuclei.outcomes import OBJECT_COLUMNS

CLASSES = ("Epithelial", "Lymphocyte", "Neutrophil")
FN_CAUSES = ("missed", "split", "too-small")
FP_CAUSES = ("spurious", "fragment", "duplicate")


@dataclass(frozen=True)
class Rates:
    """How often a version fails: a number each, or one per patient.

    Parameters
    ----------
    fail
        Chance that a nucleus is FN or misclassified.
    wrong_class
        Share of these that are misclassified.
    fps
        Mean number of FPs per region.
    """

    fail: float
    wrong_class: float = 0.3
    fps: float = 2.0


def reference_objects(
    rng: np.random.Generator, patients: int, regions: int, objects: int, ignored: float = 0.1
) -> pd.DataFrame:
    """Draw annotated objects: patient, region, id, class, ignored; at most so many per region."""
    rows = [
        {
            "patient": f"P{patient}",
            "region": f"P{patient}_{region}",
            "id": int(id_),
            "class": str(rng.choice(CLASSES)),
            "is_ignored": bool(rng.random() < ignored),
        }
        for patient in range(patients)
        for region in range(regions)
        for id_ in rng.permutation(3 * objects)[: rng.integers(0, objects + 1)] + 1
    ]
    return pd.DataFrame(rows, columns=["patient", "region", "id", "class", "is_ignored"])


def version_of(
    rng: np.random.Generator, reference: pd.DataFrame, rates: dict[str, Rates]
) -> pd.DataFrame:
    """Draw the outcomes of a version on annotated objects; ``rates`` are by patient."""
    rows: list[dict[str, Any]] = []
    for (patient, region), own in reference.groupby(["patient", "region"], sort=False):
        rate = rates[patient]
        place = {"patient": patient, "region": region}
        ids = iter((rng.permutation(10 * len(own) + 100) + 1).tolist())
        for one in own.to_dict("records"):
            nucleus = _row(rng, "reference", one["id"], one["class"])
            rows.append(place | nucleus)
            if one["is_ignored"]:
                rows[-1] |= {"status": "ignored", "iou": np.nan}
            elif rng.random() >= rate.fail:
                _match(rng, rows, place, one["class"], next(ids), "TP")
            elif rng.random() < rate.wrong_class:
                other = str(rng.choice([name for name in CLASSES if name != one["class"]]))
                _match(rng, rows, place, other, next(ids), "misclassified")
            else:
                failed = {"status": "FN", "cause": str(rng.choice(FN_CAUSES))}
                rows[-1] |= failed | {"iou": rng.uniform(0, 0.5)}
        for _ in range(rng.poisson(rate.fps)):
            fp = _row(rng, "prediction", next(ids), str(rng.choice(CLASSES)))
            failed = {"status": "FP", "cause": str(rng.choice(FP_CAUSES))}
            rows.append(place | fp | failed | {"iou": rng.uniform(0, 0.5)})
    frame = pd.DataFrame(rows, columns=["patient", "region", *OBJECT_COLUMNS])
    return frame.astype({"partner_id": "Int64", "id": "int64", "area_px": "int64"})


def two_versions(
    rng: np.random.Generator, patients: int = 3, regions: int = 2, objects: int = 8
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw two versions of one annotation."""
    reference = reference_objects(rng, patients, regions, objects)
    names = [f"P{patient}" for patient in range(patients)]
    rates = [{name: Rates(rng.uniform(0, 1)) for name in names} for _ in range(2)]
    return version_of(rng, reference, rates[0]), version_of(rng, reference, rates[1])


def _row(rng: np.random.Generator, side: str, id_: int, class_name: str) -> dict[str, Any]:
    return {
        "side": side,
        "id": id_,
        "class": class_name,
        "status": "",
        "cause": "",
        "partner_id": None,
        "partner_class": "",
        "iou": np.nan,
        "hausdorff_px": np.nan,
        "hausdorff_um": np.nan,
        "area_px": int(rng.integers(20, 200)),
        "centroid_y_px": rng.uniform(0, 60),
        "centroid_x_px": rng.uniform(0, 60),
        "score": np.nan,
    }


def _match(
    rng: np.random.Generator,
    rows: list[dict[str, Any]],
    place: dict[str, Any],
    class_name: str,
    id_: int,
    status: str,
) -> None:
    """Match the last row, an annotated object, with a new prediction."""
    nucleus, shared = rows[-1], {"status": status, "iou": rng.uniform(0.5, 1)}
    prediction = _row(rng, "prediction", id_, class_name)
    prediction |= {"partner_id": nucleus["id"], "partner_class": nucleus["class"]}
    nucleus |= {"partner_id": id_, "partner_class": class_name, **shared}
    rows.append(place | prediction | shared)


def drifting_rates(rng: np.random.Generator, patients: int, drift: float) -> list[list[float]]:
    """Draw how often an old and a new version fail per patient, none being better on average.

    Some patients are harder than others, and each version deviates in each patient by an
    effect of its own, such as of a stain that it happens to suit.
    """
    hard = rng.normal(-1.4, 0.5, patients)
    return [(1 / (1 + np.exp(-(hard + rng.normal(0, drift, patients))))).tolist() for _ in range(2)]


def drifting_figures(
    rng: np.random.Generator, patients: int, nuclei: int, drift: float = 0.4
) -> tuple[list[float], list[float]]:
    """Draw the F1 of patients in two versions, of which neither is better on average."""
    figures = []
    for rates in drifting_rates(rng, patients, drift):
        found = rng.binomial(nuclei, 1 - np.array(rates))
        fps = rng.poisson(0.1 * nuclei, patients)
        figures.append((2 * found / (found + nuclei + fps)).tolist())
    return figures[0], figures[1]
