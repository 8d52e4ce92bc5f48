"""How a cohort's folder is laid out: the known layouts, and ``cohort.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from napari_panoptic.common.errors import CohortError
from napari_panoptic.io.cohorts.patches import PlacedRegion
from napari_panoptic.io.cohorts.patterns import Pattern, name_expression
from napari_panoptic.io.formats.format import PerClass
from napari_panoptic.io.formats.labels.coco_panoptic import panoptic_scheme
from napari_panoptic.io.formats.registry import BUILT_IN, known_forms
from napari_panoptic.io.images.slides import IMAGE_ENDINGS
from napari_panoptic.values.cohort import (
    MONUSAC_CLASSES,
    ClassScheme,
    OutlineRules,
    Source,
)

ANNOTATIONS = "MoNuSAC Testing Data and Annotations"
TEAMS = "Teams"
SUBMISSIONS = "Submissions"
COLOUR_CODED = "MoNuSAC_Testing_Color_Coded_Masks"
ZARR_NAMES = ("{region}.ome.zarr", "{region}.zarr")
ONLY_TEAM = "predictions"
"""Name of the team where the patterns of a cohort name none."""

Patterns = tuple[Pattern, ...]


class PatientPattern:
    """Finds the patient in a name.

    Parameters
    ----------
    text
        Such as ``{patient}_*``, which has to fit the whole name.

    Raises
    ------
    CohortError
        If it is no pattern of one name with the placeholder ``{patient}`` alone.
    """

    def __init__(self, text: str) -> None:
        # A regular expression is refused here: as a path it would get a message about paths.
        pattern = Pattern(text) if "{patient}" in text else None
        if pattern is None or pattern.fields != {"patient"} or len(pattern.parts) != 1:
            raise CohortError(
                "files.patient must be the pattern of a name with the placeholder {patient} alone, "
                f"found '{text}'; write a pattern such as {{patient}}_* or {{patient}}-*"
            )
        self._expression = name_expression(text)

    def patient_in(self, name: str) -> str | None:
        """Return the patient in a name, or None if the name does not fit."""
        fit = self._expression.fullmatch(name)
        return fit["f_patient"] if fit else None


def patient_in(name: str, pattern: PatientPattern | None) -> str:
    """Return the patient in a name: by a pattern, else what precedes the last ``_``."""
    patient = pattern.patient_in(name) if pattern is not None else None
    return patient or name.rpartition("_")[0] or name


@dataclass(frozen=True)
class MaskPatterns:
    """Where masks of one kind lie."""

    #: The patterns of each format, the preferred first.
    forms: Mapping[Source, Patterns] = field(default_factory=dict)
    #: Where the tables of classes of label images lie, if not beside them.
    sidecars: Patterns = ()
    #: How outlines are read: by team (casefolded), and under ``""`` those of all other teams, or of
    #: the annotation.
    rules: Mapping[str, OutlineRules] = field(default_factory=dict)
    #: Where probability maps lie.
    probabilities: Patterns = ()

    @property
    def all(self) -> Patterns:
        """Every pattern."""
        of_forms = (p for patterns in self.forms.values() for p in patterns)
        return (*of_forms, *self.sidecars, *self.probabilities)


@dataclass(frozen=True)
class Layout:
    """Where the files of a cohort lie."""

    #: The classes.
    scheme: ClassScheme
    #: Where images lie, the preferred first.
    image: Patterns = ()
    #: Where the annotation lies, the teams' predictions, and the annotation's own version in
    #: another form, which is scored like a team.
    reference: MaskPatterns = MaskPatterns()
    predictions: MaskPatterns = MaskPatterns()
    annotation: MaskPatterns = MaskPatterns()
    #: How to read the patient from the region's name if no folder names it; None for: up to the
    #: last ``_``.
    patient: PatientPattern | None = None
    #: Name of the cohort, or None for the folder's.
    name: str | None = None
    #: Micrometres per pixel of all images; None for those that they state.
    mpp: float | None = None
    #: Where regions lie in slides, and the tables that say so.
    patches: tuple[PlacedRegion, ...] = ()
    patch_tables: Patterns = ()

    @property
    def all_patterns(self) -> Patterns:
        """Every pattern."""
        masks = (self.reference, self.predictions, self.annotation)
        return (
            *self.image,
            *self.patch_tables,
            *(pattern for kind in masks for pattern in kind.all),
        )

    def patient_of(self, region: str) -> str:
        """Return the patient in a region's name."""
        return patient_in(region, self.patient)


def patterns_of(*texts: str) -> Patterns:
    """Make patterns of texts."""
    return tuple(Pattern(text) for text in texts)


def _with_and_without_patient(folder: str, *names: str) -> Patterns:
    nested = [f"{folder}/{{patient}}/{name}" for name in names]
    return patterns_of(*nested, *(f"{folder}/{name}" for name in names))


MONUSAC_LAYOUT = Layout(
    scheme=MONUSAC_CLASSES,
    image=_with_and_without_patient(
        ANNOTATIONS,
        *(f"{{region}}.{ending}" for ending in IMAGE_ENDINGS),
    ),
    reference=MaskPatterns(
        {
            Source.IMAGESCOPE: _with_and_without_patient(ANNOTATIONS, "{region}.xml"),
            Source.GEOJSON: _with_and_without_patient(ANNOTATIONS, "{region}.geojson"),
            Source.LABELS: _with_and_without_patient(ANNOTATIONS, *ZARR_NAMES),
        }
    ),
    predictions=MaskPatterns(
        {
            Source.COLOUR_CODED: _with_and_without_patient(
                f"{TEAMS}/{{team}}",
                *("{region}_mask.png.tif", "{region}_mask.tif", "{region}_mask.png"),
            ),
            Source.SUBMISSION: _with_and_without_patient(
                f"{SUBMISSIONS}/{{team}}", "{region}/{class}/*.mat"
            ),
            Source.GEOJSON: _with_and_without_patient(f"{TEAMS}/{{team}}", "{region}.geojson"),
            Source.LABELS: _with_and_without_patient(f"{TEAMS}/{{team}}", *ZARR_NAMES),
        }
    ),
    annotation=MaskPatterns(
        {
            Source.COLOUR_CODED: _with_and_without_patient(
                COLOUR_CODED,
                *("{region}_RGB_mask.tif.tif", "{region}_RGB_mask.tif", "{region}_RGB_mask.png"),
            )
        }
    ),
)
"""The folders of the MoNuSAC 2020 challenge, in the spellings met so far."""


def monusac_layout() -> Layout:
    """Return the layout of MoNuSAC with all forms of one file per region that have an ending.

    Of built-in forms only the first ending counts: others, such as ``.json`` and
    ``.zip``, belong to many things. Label images are left out: they end as images and
    colour-coded masks do.
    """
    endings = {
        form.source: form.endings[:1] if form in BUILT_IN else form.endings
        for form in known_forms().values()
        if form.open is not None and form.per_class is PerClass.NEVER
    }

    def among(masks: MaskPatterns, folder: str) -> MaskPatterns:
        more = {
            form: _with_and_without_patient(folder, *(f"{{region}}{ending}" for ending in own))
            for form, own in endings.items()
            if own and form not in masks.forms
        }
        return MaskPatterns({**masks.forms, **more})

    return replace(
        MONUSAC_LAYOUT,
        reference=among(MONUSAC_LAYOUT.reference, ANNOTATIONS),
        predictions=among(MONUSAC_LAYOUT.predictions, f"{TEAMS}/{{team}}"),
    )


PANNUKE_LAYOUT = Layout(
    scheme=ClassScheme(
        names=("Neoplastic", "Inflammatory", "Connective", "Dead", "Epithelial"),
        colours=((255, 0, 0), (34, 221, 77), (35, 92, 236), (254, 255, 0), (255, 159, 68)),
        ambiguous=None,
    ),
    image=patterns_of("images.npy", "images/images.npy", "images/*/images.npy"),
    reference=MaskPatterns(
        {Source.PANNUKE: patterns_of("masks.npy", "masks/masks.npy", "masks/*/masks.npy")}
    ),
    predictions=MaskPatterns(
        {Source.PANNUKE: patterns_of(f"{TEAMS}/{{team}}.npy", f"{TEAMS}/{{team}}/masks.npy")}
    ),
)
"""A fold of PanNuke as it is distributed; the order of classes is that of its channels."""

CONIC_LAYOUT = Layout(
    scheme=ClassScheme(
        names=("Neutrophil", "Epithelial", "Lymphocyte", "Plasma", "Eosinophil", "Connective"),
        colours=(
            *((255, 165, 0), (0, 255, 0), (255, 0, 0)),
            *((0, 255, 255), (0, 0, 255), (255, 255, 0)),
        ),
        ambiguous=None,
    ),
    image=patterns_of("images.npy"),
    reference=MaskPatterns({Source.CONIC: patterns_of("labels.npy")}),
    predictions=MaskPatterns(
        {Source.CONIC: patterns_of(f"{TEAMS}/{{team}}.npy", f"{TEAMS}/{{team}}/labels.npy")}
    ),
)
"""The arrays of the CoNIC challenge as they are distributed; classes have the numbers 1 to 6."""


COCO_NAMES = ("panoptic*.json", "annotations/panoptic*.json")
"""Where the annotation of a COCO panoptic data set lies."""


def coco_layout(path: Path) -> Layout:
    """Return the layout of a COCO panoptic data set, whose annotation names its classes.

    Raises
    ------
    UnreadableFileError
        If it is not valid.
    """
    names = [f"{{region}}.{ending}" for ending in IMAGE_ENDINGS]
    photographs = ("*/{region}.jpg", "*/{region}.jpeg")  # masks are PNG
    return Layout(
        scheme=panoptic_scheme(path),
        image=patterns_of(*(f"images/{name}" for name in names), *names, *photographs),
        reference=MaskPatterns({Source.COCO_PANOPTIC: patterns_of(*COCO_NAMES)}),
        predictions=MaskPatterns(
            {
                Source.COCO_PANOPTIC: patterns_of(
                    f"{TEAMS}/{{team}}.json", f"{TEAMS}/{{team}}/panoptic*.json"
                )
            }
        ),
    )
