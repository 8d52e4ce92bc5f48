"""Sections that the reports on nuclei, detections and raters share."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from napari_panoptic import __version__
from napari_panoptic.common.findings import FINDING_TITLES, Finding, FindingKind
from napari_panoptic.report.columns import table
from napari_panoptic.report.page import Section, page, rendered
from napari_panoptic.report.writing import MADE_WITH, versions
from napari_panoptic.statistics.bootstrap import LEVEL, RESAMPLES, SEED
from napari_panoptic.statistics.friedman import SIGNIFICANCE
from napari_panoptic.tables.columns import CellContent, TableColumn, whole, words
from napari_panoptic.tables.figures import count
from napari_panoptic.tables.markup import (
    Child,
    Html,
    bullets,
    definitions,
    element,
    folded,
    fragment,
    named,
    note,
    paragraph,
)

DATA_SLUG = "data"
"""Address of the section on data quality."""
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
    "nuceval": "NucEval. arXiv:2605.03144, 2026.",
    "demsar": "Demšar J. Statistical comparisons of classifiers over multiple data sets. Journal "
    "of Machine Learning Research 7, 2006, 1–30.",
    "kerby": "Kerby DS. The simple difference formula: an approach to teaching nonparametric "
    "correlation. Comprehensive Psychology 3, 2014.",
    "holm": "Holm S. A simple sequentially rejective multiple test procedure. Scandinavian "
    "Journal of Statistics 6(2), 1979, 65–70.",
    "efron": "Efron B. Better bootstrap confidence intervals. Journal of the American Statistical "
    "Association 82(397), 1987, 171–185.",
    "mitos": "Roux L, Racoceanu D, Capron F, et al. MITOS & ATYPIA: detection of mitosis and "
    "evaluation of nuclear atypia score in breast cancer histological images. Contest at ICPR, "
    "2014.",
    "qubiq": "Menze B, Joskowicz L, Bakas S, et al. Quantification of Uncertainties in Biomedical "
    "Image Quantification: structured description of the challenge design. MICCAI, 2020.",
    "dice": "Dice LR. Measures of the amount of ecologic association between species. Ecology "
    "26(3), 1945, 297–302.",
    "brier": "Brier GW. Verification of forecasts expressed in terms of probability. Monthly "
    "Weather Review 78(1), 1950, 1–3.",
}
"""The publications that the methods sections cite."""
_EXPLAINED: Mapping[FindingKind, str] = {
    FindingKind.VANISHED: "no pixel was left",
    FindingKind.OVERLAPPING: "pixels claimed by more than one object",
    FindingKind.MISSING: "expected files that do not exist",
    FindingKind.UNREADABLE: "files that exist but cannot be used",
    FindingKind.EXTRA: "files or rows that match no region, team or class",
    FindingKind.NO_MPP: "distances are in pixels only",
    FindingKind.OUTSIDE_FOLDER: "not followed",
}
"""Explanations of titles of findings."""
_SHOWN_FINDINGS = 10


def report_document(title: str, lead: Sequence[Child], sections: Sequence[Section]) -> str:
    """Return the page of a report; its last line names the version of this program."""
    return page(title, lead, sections, f"{MADE_WITH} {__version__}.")


def lead(
    *summary: Child, date: str, findings: Sequence[Finding], consequence: str
) -> list[Html | None]:
    """Return the first lines: the subject of the report, and a warning if files are missing.

    Parameters
    ----------
    summary
        The subject of the report.
    date
        Its date; empty for none.
    findings
        All of them; missing and unreadable ones count.
    consequence
        A sentence on the effect of missing files on the metrics.
    """
    first = paragraph(*summary, f"; {date}" if date else "", ".")
    missing = (FindingKind.MISSING, FindingKind.UNREADABLE)
    n_missing = sum(finding.kind in missing for finding in findings)
    if not n_missing:
        return [first]
    files = "1 file is" if n_missing == 1 else f"{count(n_missing)} files are"
    link = element("a", "Data quality", href=f"#{DATA_SLUG}")
    text = f"{files} missing or unreadable. {consequence} See "
    return [first, element("p", text, link, ".", class_="warning")]


def settings_section(settings: Mapping[str, Child], *notes: Child) -> list[Child]:
    """Return the settings beside the versions of the packages, followed by notes."""
    beside = element(
        "div",
        element("div", element("h3", "Settings"), definitions(settings)),
        element("div", element("h3", "Versions"), definitions(dict(versions()))),
        class_="beside",
    )
    return [beside, *notes]


def fingerprints(found: Mapping[str, str]) -> Html:
    """List input files and their fingerprints."""
    rows = [{"file": file, "fingerprint": fingerprint} for file, fingerprint in found.items()]
    listed = "\n".join(f"{file} {fingerprint}" for file, fingerprint in found.items())
    together = hashlib.sha256(listed.encode("utf-8", "replace")).hexdigest()
    columns = [_code("file"), _code("fingerprint")]
    files = table("inputs", "SHA-256 of every input file.", columns, rows)
    return fragment(
        note(
            f"{count(len(found))} input files; SHA-256 of the list of their fingerprints: ",
            element("code", together),
        ),
        element("div", folded("Fingerprint of each file", files), class_="screen"),
    )


def _code(key: str) -> TableColumn:
    return TableColumn(key, lambda row: CellContent(element("code", row[key])))


# --- data quality --------------------------------------------------------------------------------


def findings_section(
    findings: Sequence[Finding], always: Sequence[FindingKind] = (FindingKind.MISSING,)
) -> list[Child]:
    """List findings by kind; kinds in ``always`` are shown even if there are none."""
    if not findings:
        return [paragraph("No problems were found while reading.")]
    by_kind = {kind: [f for f in findings if f.kind is kind] for kind in FindingKind}
    rows = [
        {"what": _title(kind), "findings": len(own), "count": sum(f.count for f in own)}
        for kind, own in by_kind.items()
        if own or kind in always
    ]
    columns = [words("what"), whole("findings"), whole("count", "objects, pixels or files")]
    caption = "Problems found while reading, and how many objects, pixels or files are affected."
    records = [finding.as_record() for finding in findings]
    return [
        table("findings", caption, columns, records, rows),
        *(
            folded(f"{_title(kind)} ({count(len(own))})", _listed(own))
            for kind, own in by_kind.items()
            if own
        ),
    ]


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


# --- methods -------------------------------------------------------------------------------------


class Citations:
    """Numbers references in the order in which they are first cited."""

    def __init__(self) -> None:
        self._keys: list[str] = []

    def __call__(self, *keys: str) -> str:
        """Return the numbers of references, such as ``[1, 2]``."""
        for key in keys:
            if key not in self._keys:
                self._keys.append(key)
        return f"[{', '.join(str(self._keys.index(key) + 1) for key in keys)}]"

    @property
    def listed(self) -> list[str]:
        """The references cited so far, in order."""
        return [REFERENCES[key] for key in self._keys]


def methods(template: str, **values: object) -> tuple[Html, list[str]]:
    """Describe an evaluation as the methods section of a paper.

    Parameters
    ----------
    template
        The paragraphs, which call ``cite``.
    values
        The variables of the template.

    Returns
    -------
    paragraphs, references
        The n-th reference is cited as ``[n]``.
    """
    cite = Citations()
    common = {
        "version": __version__,
        "significance": f"{SIGNIFICANCE:g}",
        "level": f"{LEVEL:.0%}",
        "resamples": f"{RESAMPLES:,d}",
        "seed": SEED,
    }
    text = rendered(template, cite=cite, **common, **values)
    return text, cite.listed


def methods_section(template: str, **values: object) -> list[Child]:
    """Return the paragraphs of `methods`, and its references as a list."""
    paragraphs, references = methods(template, **values)
    return [
        paragraphs,
        element("h3", "References"),
        element("ol", *(element("li", reference) for reference in references)),
    ]
