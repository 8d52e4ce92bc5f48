"""What a cohort is made of: class scheme, regions, teams, and which files hold what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

from napari_panoptic.errors import CohortError, Finding, no_such

Rgb = tuple[int, int, int]


class _Named(Protocol):
    """What has a name that is unique in its cohort."""

    @property
    def name(self) -> str: ...


_NamedT = TypeVar("_NamedT", bound=_Named)


def named_in(what: str, name: str, known: Sequence[_NamedT]) -> _NamedT:
    """Find a thing by its name.

    Parameters
    ----------
    what
        What such things are called, such as ``region``.
    name
        Its name.
    known
        All of them.

    Raises
    ------
    CohortError
        Where there is none of this name; the message names similar ones.
    """
    for each in known:
        if each.name == name:
            return each
    raise CohortError(no_such(what, name, [each.name for each in known]))


@dataclass(frozen=True)
class ClassScheme:
    """The classes of a challenge, in the order in which they are flattened and reported.

    Parameters
    ----------
    names
        The scored classes, in order. Class index 0 means "none"; the class
        ``names[k]`` has index ``k + 1`` wherever classes are numbers.
    colours
        One RGB colour (0-255) per scored class, as used in colour-coded masks
        and for colouring by class.
    ambiguous
        Name of the class whose areas are excluded from scoring, if any.
    border
        Colours that colour-coded masks draw over object borders.
    background
        Colours that stand for "no object" in colour-coded masks.
    aliases
        Other spellings found in files, mapped to the names above. Spelling is
        compared without regard to case.
    """

    names: tuple[str, ...]
    colours: tuple[Rgb, ...]
    ambiguous: str | None = "Ambiguous"
    border: tuple[Rgb, ...] = ((139, 69, 19),)
    background: tuple[Rgb, ...] = ((0, 0, 0),)
    aliases: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that the scheme can be used."""
        known = [*self.names, *([self.ambiguous] if self.ambiguous else [])]
        if not self.names or len({name.casefold() for name in known}) != len(known):
            raise CohortError(f"class names must be at least one and all different, found {known}")
        if len(self.colours) != len(self.names):
            raise CohortError(
                f"{len(self.names)} classes need {len(self.names)} colours, "
                f"found {len(self.colours)}"
            )
        if unknown := sorted(set(self.aliases.values()) - set(known)):
            raise CohortError(f"aliases point to classes that do not exist: {unknown}")

    def canonical(self, name: str) -> str | None:
        """Give the scheme's spelling of a class name, or None for an unknown class."""
        wanted = name.strip().casefold()
        known = [*self.names, *([self.ambiguous] if self.ambiguous else [])]
        table = {alias.casefold(): target for alias, target in self.aliases.items()}
        table |= {canonical.casefold(): canonical for canonical in known}
        return table.get(wanted)


MONUSAC_CLASSES = ClassScheme(
    names=("Epithelial", "Lymphocyte", "Neutrophil", "Macrophage"),
    colours=((255, 0, 0), (255, 255, 0), (0, 0, 255), (0, 255, 0)),
)


class Task(StrEnum):
    """What the regions of a cohort were annotated for; ``task`` in a ``cohort.toml``."""

    NUCLEI = "nuclei"  # every nucleus, as a mask with a class
    DETECTIONS = "detections"  # points, as in MITOS-ATYPIA-14
    RATERS = "raters"  # the same structures by several people, as in QUBIQ


class Source(str):
    """In which form objects are on disk: the name of a form, equal to that text.

    Those below are built in; `napari_panoptic.io.forms` knows every one there is.
    """

    __slots__ = ()

    COLOUR_CODED: ClassVar[Source]  # one RGB image, a colour per class
    SUBMISSION: ClassVar[Source]  # one n-ary .mat mask per class
    LABELS: ClassVar[Source]  # label images (TIFF, PNG, NPY, OME-Zarr)
    IMAGESCOPE: ClassVar[Source]  # ImageScope XML polygons
    GEOJSON: ClassVar[Source]  # GeoJSON polygons, as QuPath writes them
    PANNUKE: ClassVar[Source]  # one array of many regions, ids in a channel per class
    CONIC: ClassVar[Source]  # one array of many regions, ids and class numbers
    COCO_PANOPTIC: ClassVar[Source]  # one JSON of many regions, a PNG of ids for each
    HOVERNET: ClassVar[Source]  # HoVer-Net JSON contours
    HOVERNET_MAT: ClassVar[Source]  # HoVer-Net and CoNSeP .mat files with an inst_map
    ANNOTATION_STORE: ClassVar[Source]  # TIAToolbox annotation stores (SQLite)
    IMAGEJ_ROI: ClassVar[Source]  # ImageJ ROIs, as Fiji and StarDist write them


Source.COLOUR_CODED = Source("colour-coded")
Source.SUBMISSION = Source("submission")
Source.LABELS = Source("labels")
Source.IMAGESCOPE = Source("imagescope")
Source.GEOJSON = Source("geojson")
Source.PANNUKE = Source("pannuke")
Source.CONIC = Source("conic")
Source.COCO_PANOPTIC = Source("coco-panoptic")
Source.HOVERNET = Source("hovernet")
Source.HOVERNET_MAT = Source("hovernet-mat")
Source.ANNOTATION_STORE = Source("annotation-store")
Source.IMAGEJ_ROI = Source("imagej-roi")


@dataclass(frozen=True)
class MaskFiles:
    """The file or files that hold the objects of one region in one form.

    Parameters
    ----------
    source
        The form.
    paths
        The files: under the key ``""`` a single file for all classes, or under
        each class name the files of that class (several are kept, so that the
        reader can say which it took).
    item
        Which region of a file that holds many, as its format counts them; None
        where a file holds one.
    """

    source: Source
    paths: Mapping[str, tuple[Path, ...]]
    item: str | None = None

    @property
    def all_paths(self) -> tuple[Path, ...]:
        """Every file, in class order."""
        return tuple(path for paths in self.paths.values() for path in paths)


@dataclass(frozen=True)
class Region:
    """One image of a patient with its annotation.

    Parameters
    ----------
    name
        Unique in the cohort.
    patient
        Which patient it belongs to.
    image
        The image file, or None where there is none.
    reference
        The annotation, or None where there is none: such a region can be
        looked at, not evaluated.
    image_item
        Which image of a file that holds many; None where it holds one.
    """

    name: str
    patient: str
    image: Path | None
    reference: MaskFiles | None
    image_item: str | None = None


@dataclass(frozen=True)
class Team:
    """Somebody's predictions.

    Parameters
    ----------
    name
        Unique in the cohort.
    is_annotation
        True for the annotation's own colour-coded version, which can be scored
        like a team (to see what restoration costs) but is none: it stays out
        of the default selection and of the ranking.
    """

    name: str
    is_annotation: bool = False


@dataclass(frozen=True)
class Cohort:
    """Regions, teams, and which files hold which team's predictions.

    Parameters
    ----------
    name
        A name for people, usually the folder's.
    root
        The folder it was found in.
    scheme
        The classes.
    regions
        Sorted by patient and name.
    teams
        Sorted by name; the annotation's own version, if any, last.
    predictions
        ``(team name, region name)`` -> the forms in which the prediction is
        there. Missing pairs are absent.
    findings
        What was missing, extra or odd in the folder.
    """

    name: str
    root: Path
    scheme: ClassScheme
    regions: tuple[Region, ...]
    teams: tuple[Team, ...]
    predictions: Mapping[tuple[str, str], Mapping[Source, MaskFiles]]
    findings: tuple[Finding, ...] = ()

    @property
    def patients(self) -> tuple[str, ...]:
        """Patient ids, in order, each once."""
        return tuple(dict.fromkeys(region.patient for region in self.regions))

    @property
    def competing_teams(self) -> tuple[Team, ...]:
        """The teams without the annotation's own colour-coded version."""
        return tuple(team for team in self.teams if not team.is_annotation)

    def region(self, name: str) -> Region:
        """Find a region by its name.

        Raises
        ------
        CohortError
            Where there is no such region; the message names similar ones.
        """
        return named_in("region", name, self.regions)

    def team(self, name: str) -> Team:
        """Find a team by its name.

        Raises
        ------
        CohortError
            Where there is no such team; the message names those there are.
        """
        return named_in("team", name, self.teams)
