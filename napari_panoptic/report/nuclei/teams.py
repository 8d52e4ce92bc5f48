"""Parts of the report: settings, data quality, and figures of teams, patients and classes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from napari_panoptic.common.errors import FINDING_TITLES, Finding, FindingKind, english_list
from napari_panoptic.nuclei.cohort_report import CohortReport
from napari_panoptic.nuclei.metrics import CLASS_COLUMNS, METRIC_NAMES, class_metrics
from napari_panoptic.nuclei.patients import summed
from napari_panoptic.nuclei.values.settings import PROTOCOLS, Scoring
from napari_panoptic.report import plots
from napari_panoptic.report.cells import (
    all_teams,
    note,
    number,
    team_cell,
    team_html,
    writer,
)
from napari_panoptic.report.nuclei.tables import (
    confusion_table,
    input_fingerprints,
    patients_by_class_table,
    patients_table,
    teams_table,
)
from napari_panoptic.report.page import (
    Cell,
    Child,
    Html,
    Table,
    bullets,
    element,
    folded,
    fragment,
    named,
    paragraph,
    plot_figure,
    table,
)
from napari_panoptic.report.sections import settings_beside_versions
from napari_panoptic.report.text import (
    FIGURE_NAMES,
    UNDEFINED,
    count,
    ratio,
)

_EXPLAINED: Mapping[FindingKind, str] = {
    FindingKind.VANISHED: "not a single pixel was left",
    FindingKind.OVERLAPPING: "pixels that more than one object claims",
    FindingKind.MISSING: "files that should be there and are not",
    FindingKind.UNREADABLE: "files that are there and cannot be used",
    FindingKind.EXTRA: "files or rows that belong to nothing known",
    FindingKind.NO_MPP: "distances stay in pixels",
    FindingKind.OUTSIDE_FOLDER: "not followed",
}
"""What titles of findings leave open."""
_SHOWN_FINDINGS = 10
_CLASS_FIGURES = tuple(name for name in CLASS_COLUMNS if name not in ("class", "iou_sum"))


def settings_section(report: CohortReport) -> list[Child]:
    """Describe what was evaluated, how, with what, and from which files."""
    request = report.request
    base = PROTOCOLS.get(request.protocol)
    changed = {} if base is None else request.settings.differences(base)
    items: dict[str, Child] = {
        "protocol": request.protocol,
        "changed from it": english_list(list(changed)) if changed else "nothing",
        "form of the predictions": "the usual one of each team"
        if request.source is None
        else str(request.source),
        "groups of patients": request.group_column or "none",
    }
    items |= {key.replace("_", " "): _value(v) for key, v in request.settings.as_record().items()}
    parts: list[Child] = [settings_beside_versions(items)]
    if request.settings.scoring is Scoring.CHALLENGE:
        parts.append(
            note(
                "Score, team, patient and class figures follow the challenge's scoring. Ways to "
                "average, robustness, sizes, causes and pictures use the same settings with "
                "disentangled scoring, which knows what became of each object."
            )
        )
    parts.append(_fingerprints(report))
    return parts


def _value(value: object) -> str:
    if isinstance(value, list):
        return english_list(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _fingerprints(report: CohortReport) -> Html:
    return fingerprint_parts(input_fingerprints(report.cohort, report.request.team_names))


def fingerprint_parts(found: Mapping[str, str]) -> Html:
    """List input files and their fingerprints."""
    frame = pd.DataFrame({"file": list(found), "fingerprint": list(found.values())})
    rows = [
        [Cell(element("code", name)), Cell(element("code", own))] for name, own in found.items()
    ]
    listed = "\n".join(f"{name} {own}" for name, own in found.items())
    together = hashlib.sha256(listed.encode("utf-8", "replace")).hexdigest()
    header = ["file", "fingerprint"]
    shown = Table("inputs", "Every input file and its SHA-256.", header, rows, frame)
    return fragment(
        _all_inputs(len(found), together),
        element("div", folded("Fingerprint of each file", table(shown)), class_="screen"),
    )


def _all_inputs(number_of_files: int, together: str) -> Html:
    return note(
        f"{count(number_of_files)} input files; SHA-256 of the list of their fingerprints: ",
        element("code", together),
    )


def data_quality_section(report: CohortReport) -> list[Child]:
    """List what was missing, unreadable or odd."""
    always = (FindingKind.VANISHED, FindingKind.OVERLAPPING, FindingKind.MISSING)
    return findings_parts(report.findings, always)


def findings_parts(
    findings: Sequence[Finding], always: Sequence[FindingKind] = (FindingKind.MISSING,)
) -> list[Child]:
    """List findings: a table of their kinds, some of which are told even if there are none."""
    if not findings:
        return [paragraph("Nothing was missing, unreadable or odd.")]
    parts: list[Child] = []
    by_kind: dict[FindingKind, list[Finding]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    rows = [
        [
            Cell(_title(kind)),
            number(len(by_kind.get(kind, [])), count),
            number(sum(f.count for f in by_kind.get(kind, [])), count),
        ]
        for kind in FindingKind
        if kind in by_kind or kind in always
    ]
    records = [finding.as_record() for finding in findings]
    caption = "What was met while reading, and how many objects, pixels or files it concerns."
    header = ["what", "findings", "objects, pixels or files"]
    parts.append(table(Table("findings", caption, header, rows, pd.DataFrame(records))))
    parts += [
        folded(_title(kind) + f" ({count(len(by_kind[kind]))})", _listed(by_kind[kind]))
        for kind in FindingKind
        if kind in by_kind
    ]
    return parts


def _title(kind: FindingKind) -> str:
    title = FINDING_TITLES[kind]
    title = title[0].upper() + title[1:]
    return f"{title}: {_EXPLAINED[kind]}" if kind in _EXPLAINED else title


def _listed(findings: Sequence[Finding]) -> Html:
    items: list[Child] = [
        fragment(
            fragment("region ", named(finding.region), ": ") if finding.region else None,
            fragment("team ", named(finding.team), ": ") if finding.team else None,
            named(finding.message),
        )
        for finding in findings[:_SHOWN_FINDINGS]
    ]
    if len(findings) > _SHOWN_FINDINGS:
        items.append(f"and {count(len(findings) - _SHOWN_FINDINGS)} more: see the CSV file")
    return bullets(items)


def teams_section(report: CohortReport) -> list[Child]:
    """Show the figures of teams, and how they spread over patients."""
    frame = teams_table(report.evaluation)
    rows = []
    for record in frame.to_dict("records"):
        cells = [team_cell(report, record["team"]), number(record["patients"], count)]
        for name in METRIC_NAMES:
            mean, sd = float(record[f"{name}_mean"]), float(record[f"{name}_sd"])
            places = 1 if name.endswith("_px") else 3
            spread = "" if math.isnan(sd) else f"±\N{NO-BREAK SPACE}{ratio(sd, places)}"
            middle = report.evaluation.summaries[record["team"]].averaged[name].median
            below = element("span", spread, class_="rank")
            under = element("span", f"({ratio(middle, places)})", class_="rank")
            text = fragment(ratio(mean, places), element("br"), below, element("br"), under)
            cells.append(Cell(text, mean))
            frame.loc[frame["team"] == record["team"], f"{name}_median"] = middle
        rows.append(cells)
    header = ["team", "patients", *(FIGURE_NAMES[name] for name in METRIC_NAMES)]
    caption = (
        "Mean ± sample standard deviation (median) over the patients for whom the figure is "
        "defined. "
        f"{UNDEFINED} stands where it is defined for none; no ± where it is for one only."
    )
    teams = all_teams(report)
    panels = {name: patients_table(own) for name, own in report.lessons.items()}
    own = patients_table(report.evaluation)
    return [
        table(Table("teams", caption, header, rows, frame)),
        plot_figure(
            plots.patient_boxes({"": own}, teams),
            "pq-boxes",
            "PQ per patient. Boxes: quartiles and median; whiskers: furthest value within 1.5 "
            "times the box; points: patients; cross: mean.",
        ),
        plot_figure(
            plots.patient_boxes(panels, teams),
            "pq-boxes-conditions",
            "PQ per patient under two restorations and two matching rules.",
        ),
        plot_figure(
            plots.quality_scatter(panels, teams),
            "dq-sq",
            "DQ and SQ per patient; large marks are means, grey curves join places of one product, "
            "which is given at their ends.",
        ),
        plot_figure(
            plots.detection_scatter(panels, teams),
            "precision-recall",
            "Detection precision and recall per patient; large marks are means, grey curves join "
            "places of one F1, which is given at their ends.",
        ),
    ]


def patients_section(report: CohortReport) -> list[Child]:
    """Show the figures of every patient, and who was not evaluated."""
    frame = patients_table(report.evaluation)
    header = ["patient", "team", *(FIGURE_NAMES[name] for name in METRIC_NAMES)]
    rows = []
    for record in frame.sort_values(["patient", "team"]).to_dict("records"):
        figures = (number(record[name], writer(name)) for name in METRIC_NAMES)
        patient = Cell(named(record["patient"]))
        rows.append([patient, team_cell(report, record["team"]), *figures])
    caption = "Figures of the counts summed over each patient's regions."
    missing = {
        team: [p for p in report.cohort.patients if p not in summary.patients]
        for team, summary in report.evaluation.summaries.items()
    }
    gaps = [
        fragment(
            team_html(report, team),
            f" was evaluated in {len(report.cohort.patients) - len(absent)} of "
            f"{len(report.cohort.patients)} patients; not in ",
            named(english_list(absent)),
            ".",
        )
        for team, absent in missing.items()
        if absent
    ]
    return [
        bullets(gaps) if gaps else note("Every team was evaluated in every patient."),
        table(Table("patients", caption, header, rows, frame)),
    ]


def classes_section(report: CohortReport) -> list[Child]:
    """Show the figures of every class."""
    frames = []
    for team, summary in report.evaluation.summaries.items():
        own = class_metrics(summed(summary.patients.values(), report.cohort.scheme.names))
        own.insert(0, "team", team)
        frames.append(own)
    pooled = pd.concat(frames, ignore_index=True)
    by_patient = patients_by_class_table(report.evaluation)
    names = {name: FIGURE_NAMES.get(name, name) for name in _CLASS_FIGURES}
    header: list[Child] = ["class", "team", *(names[name] for name in _CLASS_FIGURES)]
    rows = [
        [Cell(named(r["class"])), team_cell(report, r["team"]), *_class_cells(r)]
        for r in pooled.sort_values("class", kind="stable", key=_in_order(report)).to_dict(
            "records"
        )
    ]
    caption = (
        "Counts summed over all patients. Precision, recall and F1 are of the classes given to "
        "matched nuclei, on the row-normalised confusion matrix; mean IoU and Hausdorff "
        f"distances are over all matched nuclei, whatever class they got. {UNDEFINED}: nothing "
        "to divide by, such as no nucleus of the class."
    )
    long_rows = [
        [
            Cell(named(r["patient"])),
            team_cell(report, r["team"]),
            Cell(named(r["class"])),
            *_class_cells(r),
        ]
        for r in by_patient.to_dict("records")
    ]
    long_caption = "The same for each patient."
    long_header: list[Child] = ["patient", "team", "class", *header[2:]]
    return [
        table(Table("classes", caption, header, rows, pooled)),
        folded(
            f"Classes of each patient ({count(len(long_rows))} rows)",
            table(
                Table("patients_by_class", long_caption, long_header, long_rows, by_patient),
            ),
        ),
    ]


def _in_order(report: CohortReport) -> Callable[[pd.Series[Any]], pd.Series[Any]]:
    order = {name: place for place, name in enumerate(report.cohort.scheme.names)}
    return lambda names: names.map(order)


def _class_cells(record: Mapping[Any, Any]) -> list[Cell]:
    return [
        number(record[name], count if name in ("tp", "fp", "fn") else writer(name))
        for name in _CLASS_FIGURES
    ]


def confusion_section(report: CohortReport) -> list[Child]:
    """Show which class was taken for which."""
    frame = confusion_table(report.evaluation)
    teams, classes = all_teams(report), report.cohort.scheme.names
    header: list[Child] = ["team", "reference", *("none", *classes)]
    rows = []
    for (team, reference), cells in frame.groupby(["team", "reference"], sort=False):
        counts = dict(zip(cells["prediction"], cells["count"], strict=True))
        rows.append(
            [
                team_cell(report, str(team)),
                Cell(named(str(reference))),
                *(number(counts[name], count) for name in ("none", *classes)),
            ]
        )
    caption = "Objects by annotated (rows) and predicted class; none: unmatched."
    return [
        plot_figure(
            plots.confusion_matrices(frame, classes, teams),
            "confusion",
            "Objects by annotated and predicted class, summed over the cohort; none: unmatched. "
            "Shades are shares of the row.",
        ),
        plot_figure(
            plots.confusion_matrices(frame, classes, teams, normalised=True),
            "confusion-normalised",
            "Of the matched nuclei of a class, which share got which class. "
            f"{UNDEFINED}: no nucleus of the class was matched.",
        ),
        folded("The same as a table", table(Table("confusion", caption, header, rows, frame))),
    ]
