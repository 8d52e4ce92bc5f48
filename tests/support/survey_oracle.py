"""Estimates of a plan from its tables, by the formulas of textbooks, slow and in plain Python.

Cochran, Sampling Techniques (1977), chapters 5 and 5A: stratified expansion. Särndal, Swensson and
Wretman, Model Assisted Survey Sampling (1992), section 5.5: linearised variance of a function of
totals. Nothing here is shared with the package: sizes of strata come from the probabilities in the
plan, outcomes from the rows of objects.csv, derivatives from differences.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

Row = Mapping[str, str]
Totals = dict[str, float]
Figure = tuple[str, str]

QUANTITIES = ("annotation-error-rate", "precision", "recall", "f1", "pq")
VERDICTS = ("annotation-right", "prediction-right", "both-wrong")
PRIOR_ITEMS = 2.0
PRIOR_VERDICTS = 1.0
PRIOR_LACKED = 1.0


def added_by(objects: Mapping[tuple[str, str, int], Row], item: Row, verdict: str) -> Totals:
    """Return what an object adds to each total if a verdict is right."""
    own = objects[item["region"], item["side"], int(item["id"])]
    status, cls, partner = own["status"], own["class"], own["partner_class"]
    iou = float(own["iou"] or 0)
    totals: Totals = defaultdict(float)
    if item["side"] == "reference":
        totals[f"references {cls}"] += 1
        if verdict != "annotation-right":
            totals[f"errors {cls}"] += 1
    if status == "TP":
        if verdict == "both-wrong":
            totals[f"fp {partner}"] += 1
            totals["spurious"] += 1
        else:
            totals[f"tp {cls}"] += 1
            totals[f"iou {cls}"] += iou
            totals["matched"] += 1
    elif status == "misclassified":
        if verdict == "annotation-right":
            totals[f"fn {cls}"] += 1
            totals[f"fp {partner}"] += 1
            totals["matched"] += 1
        elif verdict == "prediction-right":
            totals[f"tp {partner}"] += 1
            totals[f"iou {partner}"] += iou
            totals["matched"] += 1
        else:
            totals[f"fp {partner}"] += 1
            totals["spurious"] += 1
    elif status == "FN":
        if verdict == "annotation-right":
            totals[f"fn {cls}"] += 1
            totals["missed"] += 1
    elif status == "FP":
        if verdict == "prediction-right":
            totals[f"tp {cls}"] += 1
            totals[f"iou {cls}"] += 1
            totals["matched"] += 1
        else:
            totals[f"fp {cls}"] += 1
            totals["spurious"] += 1
    return totals


def changed_by(objects: Mapping[tuple[str, str, int], Row], item: Row, verdict: str) -> Totals:
    """Return what a verdict changes in each total that is known as annotated, or adds to others.

    The numbers of reference objects are estimated, so that error rates are ratios.
    """
    own, before = added_by(objects, item, verdict), known_of(objects, item)
    return {name: own.get(name, 0) - before.get(name, 0) for name in {*own, *before}}


def known_of(objects: Mapping[tuple[str, str, int], Row], item: Row) -> Totals:
    """Return what an object adds as annotated to the totals that are known without a review."""
    added = added_by(objects, item, VERDICTS[0])
    return {name: n for name, n in added.items() if not name.startswith("references")}


def mean_of(
    objects: Mapping[tuple[str, str, int], Row], items: Sequence[Row], verdict: str
) -> Totals:
    """Return what a verdict changes in each total, as the mean over items."""
    result: Totals = defaultdict(float)
    for item in items:
        for name, value in changed_by(objects, item, verdict).items():
            result[name] += value / len(items)
    return result


def figure(totals: Mapping[str, float], which: Figure, classes: Sequence[str]) -> float:
    """Compute one figure; NaN if undefined."""
    quantity, cls = which

    def of(name: str, wanted: str) -> float:
        return totals.get(f"{name} {wanted}", 0.0)

    lacked = totals.get("lacked", 0.0)
    everything = sum(of("tp", c) + of("fn", c) for c in classes)
    if cls == "all":
        if quantity == "annotation-error-rate":
            return ratio(
                sum(of("errors", c) for c in classes), sum(of("references", c) for c in classes)
            )
        if quantity == "pq":
            known = [figure(totals, ("pq", c), classes) for c in classes]
            known = [value for value in known if not math.isnan(value)]
            return ratio(sum(known), len(known))
        tp, fp = totals.get("matched", 0.0), totals.get("spurious", 0.0)
        fn = totals.get("missed", 0.0) + lacked
    else:
        if quantity == "annotation-error-rate":
            return ratio(of("errors", cls), of("references", cls))
        tp, fp, fn = of("tp", cls), of("fp", cls), of("fn", cls)
        if lacked:
            fn += lacked * ratio(tp + fn, everything)
    if quantity == "precision":
        return ratio(tp, tp + fp)
    if quantity == "recall":
        return ratio(tp, tp + fn)
    if quantity == "f1":
        return ratio(2 * tp, 2 * tp + fp + fn)
    return ratio(of("iou", cls), tp + fp / 2 + fn / 2)


def ratio(above: float, below: float) -> float:
    return above / below if below > 0 else math.nan


def derivative(
    totals: Mapping[str, float], name: str, of: Callable[[Mapping[str, float]], float]
) -> float:
    step = 1e-4 * max(1.0, abs(totals.get(name, 0.0)))
    values = []
    for sign in (1, -1):
        moved = dict(totals)
        moved[name] = moved.get(name, 0.0) + sign * step
        values.append(of(moved))
    return (values[0] - values[1]) / (2 * step)


def estimates(
    plan: Sequence[Row],
    verdicts: Mapping[int, tuple[str, int]],
    objects: Mapping[tuple[str, str, int], Row],
    classes: Sequence[str],
    population: Sequence[Row],
) -> dict[Figure, tuple[float, float]]:
    """Return estimate and standard error of each figure of one team.

    Parameters
    ----------
    plan
        Rows of plan.csv, all reviewed.
    verdicts
        Item -> its verdict, and its count.
    objects
        Region, side, id -> row of objects.csv.
    classes
        The scored classes.
    population
        Stratum, patient, region, side and id of all objects that take part.
    """
    strata: dict[str, list[Row]] = defaultdict(list)
    for row in plan:
        strata[row["stratum"]].append(row)
    size = {name: len(rows) / float(rows[0]["probability"]) for name, rows in strata.items()}
    weight = {row["item"]: 1 / float(row["probability"]) for row in plan}

    def added(row: Row, verdict: str, count: float) -> Totals:
        if row["side"] == "background":
            return {"lacked": count}
        return changed_by(objects, row, verdict)

    given = {row["item"]: added(row, *verdicts[int(row["item"])]) for row in plan}
    totals: Totals = defaultdict(float)
    classes_of: dict[str, set[tuple[str, str]]] = defaultdict(set)
    alike: dict[str, dict[tuple[str, ...], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in population:
        for name, value in known_of(objects, row).items():
            totals[name] += value
        own = objects[row["region"], row["side"], int(row["id"])]
        classes_of[row["stratum"]].add((own["class"], own["partner_class"]))
        alike[row["stratum"]][own["class"], own["partner_class"], row["patient"]].append(row)
    for row in plan:
        for name, value in given[row["item"]].items():
            totals[name] += weight[row["item"]] * value
    totals = {name: value if value > 1e-9 else 0.0 for name, value in totals.items()}
    for cls in classes:
        totals[f"iou {cls}"] = min(totals.get(f"iou {cls}", 0.0), totals.get(f"tp {cls}", 0.0))

    kinds: dict[str, list[Row]] = defaultdict(list)
    for row in plan:
        kinds[kind_of(row, objects)].append(row)
    shares, lacked = {}, {}
    for kind, rows in kinds.items():
        mean = sum(weight[row["item"]] for row in rows) / len(rows)
        if kind.startswith("background"):
            found = sum(weight[row["item"]] / mean * verdicts[int(row["item"])][1] for row in rows)
            squares = sum(
                weight[row["item"]] / mean * verdicts[int(row["item"])][1] ** 2 for row in rows
            )
            cluster = squares / found if found else 1.0
            lacked[kind] = cluster * (found + PRIOR_LACKED * cluster) / len(rows)
            continue
        counts = dict.fromkeys(VERDICTS, PRIOR_VERDICTS)
        for row in rows:
            counts[verdicts[int(row["item"])][0]] += weight[row["item"]] / mean
        shares[kind] = {verdict: n / sum(counts.values()) for verdict, n in counts.items()}

    result = {}
    for which in [(q, c) for q in QUANTITIES for c in (*classes, "all")]:

        def value(of: Mapping[str, float], which: Figure = which) -> float:
            return figure(of, which, classes)

        if math.isnan(value(totals)):
            result[which] = (math.nan, math.nan)
            continue
        names = {
            n
            for c in classes
            for n in (f"{w} {c}" for w in ("references", "errors", "tp", "fp", "fn", "iou"))
        }
        names |= {"matched", "spurious", "missed", "lacked"}
        slopes = {name: derivative(totals, name, value) for name in names}

        def linear(added: Totals, slopes: Mapping[str, float] = slopes) -> float:
            return sum(slopes[name] * number for name, number in added.items())

        variance = 0.0
        for name, rows in strata.items():
            n, all_ = len(rows), size[name]
            z = [linear(given[row["item"]]) for row in rows]
            middle = sum(z) / n
            squares = sum((one - middle) ** 2 for one in z)
            kind = kind_of(rows[0], objects)
            if kind.startswith("background"):
                prior = slopes["lacked"] ** 2 * lacked[kind]
            else:
                spread = [
                    (shares[kind][v] * len(own) / all_, linear(mean_of(objects, own, v)))
                    for own in alike[name].values()
                    for v in VERDICTS
                ]
                centre = sum(p * one for p, one in spread)
                prior = sum(p * (one - centre) ** 2 for p, one in spread)
            s2 = (squares + PRIOR_ITEMS * prior) / (n - 1 + PRIOR_ITEMS)
            is_by_class = which[1] != "all" or which[0] == "pq"
            if kind.startswith("background") or (is_by_class and len(classes_of[name]) > 1):
                s2 = max(s2, prior)
            variance += all_**2 * (1 - n / all_) * s2 / n
        result[which] = (value(totals), math.sqrt(variance))
    return result


def kind_of(row: Row, objects: Mapping[tuple[str, str, int], Row]) -> str:
    """Return the outcome of an item; suspects are of a kind of their own."""
    mark = " suspect" if row["stratum"].split("/")[2:3] == ["suspect"] else ""
    if row["side"] == "background":
        return f"background{mark}"
    return objects[row["region"], row["side"], int(row["id"])]["status"] + mark


def least(n_reviews: int) -> float:
    """Return the nominal share less 4 standard errors of that many reviews.

    A right interval fails this once in 30,000 times, and 1.96 standard errors that are too small
    by a third hold the truth in 81 %.
    """
    return 0.95 - 4 * math.sqrt(0.95 * 0.05 / n_reviews)
