"""What a cohort is made of: class scheme, regions, teams, and which files hold what."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar

from napari_panoptic.common.errors import CohortError
from napari_panoptic.common.findings import Finding
from napari_panoptic.common.text import composed, english_list, no_such

Rgb = tuple[int, int, int]


class _Named(Protocol):
    """An object with a name that is unique in its cohort."""

    @property
    def name(self) -> str: ...


class _OfPatient(_Named, Protocol):
    """A region of a patient."""

    @property
    def patient(self) -> str: ...


_NamedT = TypeVar("_NamedT", bound=_Named)
_OfPatientT = TypeVar("_OfPatientT", bound=_OfPatient)


class FoundByName(Generic[_NamedT]):
    """Base of all cohorts: lookup of regions and teams by name."""

    region_word: ClassVar[str] = "region"
    """The word for a region in messages."""

    @property
    def all_regions(self) -> Sequence[_NamedT]:
        """The regions of the cohort."""
        raise NotImplementedError

    @property
    def team_names(self) -> tuple[str, ...]:
        """Names of the teams, in order."""
        raise NotImplementedError

    def input_files(self, teams: Container[str] | None = None) -> set[Path]:
        """Return every input file: images, annotations, and those of these teams, or of all."""
        raise NotImplementedError

    @property
    def files(self) -> frozenset[Path]:
        """Every file of the cohort, resolved; none may ever be overwritten."""
        return frozenset(path.resolve() for path in self.input_files())

    def region(self, name: str) -> _NamedT:
        """Find a region by its name.

        Raises
        ------
        CohortError
            If there is no such region; the message names similar ones.
        """
        name = composed(name)
        if name not in self._by_name:
            raise CohortError(no_such(self.region_word, name, list(self._by_name)))
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> Mapping[str, _NamedT]:
        found: dict[str, _NamedT] = {}
        for each in self.all_regions:
            found.setdefault(each.name, each)
        return found

    def checked_team(self, name: str) -> str:
        """Return a team's name back.

        Raises
        ------
        CohortError
            If there is no such team; the message names the existing ones.
        """
        name = composed(name)
        if name not in self.team_names:
            raise CohortError(no_such("team", name, self.team_names))
        return name


ONLY_CLASS = "Nucleus"
"""Class of every object if neither files nor arrays state classes."""


class PatientCohort(FoundByName[_OfPatientT]):
    """Base of the cohorts whose regions belong to patients."""

    teams: tuple[Team, ...]
    prediction_places: tuple[str, ...]

    @property
    def patients(self) -> tuple[str, ...]:
        """Patient ids, in order, each once."""
        return tuple(dict.fromkeys(region.patient for region in self.all_regions))

    @property
    def team_names(self) -> tuple[str, ...]:
        """Names of the teams, in order."""
        return tuple(team.name for team in self.teams)

    @property
    def predictions_expected(self) -> str:
        """Where predictions are expected, for a message if there are none."""
        return expected_at(self.prediction_places)


MOST_CLASSES = 256
"""Largest number of classes of a cohort: tables have a row for every two of them."""


@dataclass(frozen=True)
class ClassScheme:
    """The classes of a challenge, in the order in which they are flattened and reported."""

    #: The scored classes, in order. Class index 0 means "none"; the class ``names[k]`` has index
    #: ``k + 1`` wherever classes are numbers.
    names: tuple[str, ...]
    #: One RGB colour (0-255) per scored class, as used in colour-coded masks and for colouring by
    #: class.
    colours: tuple[Rgb, ...]
    #: Name of the class whose areas are excluded from scoring, if any.
    ambiguous: str | None = "Ambiguous"
    #: Colours that colour-coded masks draw over object borders.
    border: tuple[Rgb, ...] = ((139, 69, 19),)
    #: Colours that stand for "no object" in colour-coded masks.
    background: tuple[Rgb, ...] = ((0, 0, 0),)
    #: Other spellings found in files, mapped to the names above. Spelling is compared without
    #: regard to case.
    aliases: Mapping[str, str] = field(default_factory=dict)
    #: The class of objects whose class has another name; None if such objects are left out.
    default: str | None = None
    #: Other names of classes, whose objects are left out on purpose.
    ignored: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that the scheme can be used."""
        if len(self.names) > MOST_CLASSES:
            raise CohortError(
                f"expected up to {MOST_CLASSES} classes, found {len(self.names)}; "
                f"merge some of them"
            )
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
        """Return the scheme's spelling of a class name; `default` for an unknown class."""
        wanted = name.strip().casefold()
        known = [*self.names, *([self.ambiguous] if self.ambiguous else [])]
        table = {alias.casefold(): target for alias, target in self.aliases.items()}
        table |= {canonical.casefold(): canonical for canonical in known}
        return table.get(wanted, self.default)

    def first_known(self, names: Sequence[str]) -> str | None:
        """Return the scheme's spelling of the first name that it knows, or None.

        Parameters
        ----------
        names
            What one class may be called, the preferred name first.
        """
        return next((known for name in names if (known := self.canonical(name))), None)


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
    """The format in which objects are on disk: its name, equal to that text.

    Those below are built in; `napari_panoptic.io.formats.registry` knows every one there is.
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
    COCO_INSTANCES: ClassVar[Source]  # COCO polygons and run lengths, of many regions
    CELLVIT: ClassVar[Source]  # CellViT cells.json
    ASAP: ClassVar[Source]  # ASAP XML polygons
    HALO: ClassVar[Source]  # HALO .annotations
    DSA: ClassVar[Source]  # annotations of the Digital Slide Archive
    CELLPOSE_OUTLINES: ClassVar[Source]  # contours in text files of Cellpose
    DICOM_ANN: ClassVar[Source]  # DICOM Microscopy Bulk Simple Annotations
    DICOM_SEG: ClassVar[Source]  # DICOM Segmentations
    NAPARI_SHAPES: ClassVar[Source]  # the CSV of a Shapes layer of napari
    NUCLS: ClassVar[Source]  # tables of NuCLS
    TIATOOLBOX_ZARR: ClassVar[Source]  # contours in Zarr, as TIAToolbox 2 writes them
    NUCLEUS_MASKS: ClassVar[Source]  # a mask image for each nucleus, as in DSB 2018
    YOLO: ClassVar[Source]  # YOLO segmentation text


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
Source.COCO_INSTANCES = Source("coco-instances")
Source.CELLVIT = Source("cellvit")
Source.ASAP = Source("asap")
Source.HALO = Source("halo")
Source.DSA = Source("dsa")
Source.CELLPOSE_OUTLINES = Source("cellpose-outlines")
Source.DICOM_ANN = Source("dicom-ann")
Source.DICOM_SEG = Source("dicom-seg")
Source.NAPARI_SHAPES = Source("napari-shapes")
Source.NUCLS = Source("nucls")
Source.TIATOOLBOX_ZARR = Source("tiatoolbox-zarr")
Source.NUCLEUS_MASKS = Source("nucleus-masks")
Source.YOLO = Source("yolo")


class Vertices(StrEnum):
    """What outlines with whole-number vertices run through."""

    PIXEL_EDGES = "pixel-edges"  # the corners of pixels, as in QuPath and ImageJ
    PIXEL_CENTRES = "pixel-centres"  # an object's border pixels, as traced by OpenCV


class Multipolygons(StrEnum):
    """What the parts of a GeoJSON MultiPolygon are."""

    ONE_OBJECT = "one-object"  # parts of one object
    SPLIT = "split"  # an object each


class Axes(StrEnum):
    """In which order files state rows and columns."""

    AS_STATED = "as-stated"  # as their format has it
    SWAPPED = "swapped"  # the other way round: x and y, or rows and columns, are exchanged


class MaskObjects(StrEnum):
    """What the objects of a mask of pixels are."""

    NUMBERS = "numbers"  # the pixels of one number, wherever they lie
    PIECES = "pieces"  # each connected piece: the numbers are classes, or the same for all


class Crowds(StrEnum):
    """What annotations of COCO instances with ``iscrowd`` are."""

    EXCLUDED = "excluded"  # areas in which single objects are not annotated
    OBJECTS = "objects"  # an object each, as CVAT exports every mask


@dataclass(frozen=True)
class OutlineRules:
    """How the objects and scores of one side are read, where programs differ."""

    #: None if the cohort does not say: read as pixel edges, and reported where they look like pixel
    #: centres.
    vertices: Vertices | None = None
    #: None if the cohort does not say: read as one object each, and reported where their parts lie
    #: far apart.
    multipolygons: Multipolygons | None = None
    #: None for `Axes.AS_STATED`.
    axes: Axes | None = None
    #: Pixels of the image per pixel of the files, such as 2 for objects found at half the
    #: resolution; None for 1.
    scale: float | None = None
    #: Where pixel 0, 0 of outlines lies in the image, in px along x and y; None for its corner.
    #: Axes are swapped and outlines scaled before.
    offset_xy: tuple[float, float] | None = None
    #: None for `MaskObjects.NUMBERS`.
    objects: MaskObjects | None = None
    #: The name of the measurement, property or column that is the score of an object; None if the
    #: cohort does not say: well-known names are used, see `napari_panoptic.io.formats.scores`.
    score: str | None = None
    #: None if the cohort does not say: excluded, and reported.
    crowds: Crowds | None = None
    #: Whether outlines count from the bounds of their slide, as QuPath does: that is then their
    #: offset in each region.
    from_bounds: bool | None = None

    @property
    def is_placed(self) -> bool:
        """Whether pixels of the files are not those of the image."""
        is_moved = self.offset_xy not in (None, (0.0, 0.0)) or bool(self.from_bounds)
        return self.is_swapped or self.scale not in (None, 1.0) or is_moved

    @property
    def is_swapped(self) -> bool:
        """Whether x and y are exchanged."""
        return self.axes is Axes.SWAPPED

    def at_bounds(self, bounds_xy: tuple[int, int]) -> OutlineRules:
        """Return these rules for a region whose slide has such bounds."""
        return replace(self, offset_xy=bounds_xy, from_bounds=None) if self.from_bounds else self

    def completed(self, usual: OutlineRules) -> OutlineRules:
        """Return these rules, and those of ``usual`` where these state nothing."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.offset_xy is not None:
            usual = replace(usual, from_bounds=None)  # both are the offset
        return replace(usual, **{name: value for name, value in own.items() if value is not None})


UNSTATED = OutlineRules()
"""The rules of a cohort that states none."""


@dataclass(frozen=True)
class SlidePatch:
    """Where a region lies in a slide, whose outlines apply to it."""

    #: Left and upper edge of the region, in px of the slide at full resolution.
    x_px: float
    y_px: float
    #: Width of a pixel of the region, in px of the slide at full resolution.
    scale: float = 1.0


@dataclass(frozen=True)
class MaskFiles:
    """The file or files that hold the objects of one region in one format."""

    #: The format.
    source: Source
    #: The files: under the key ``""`` a single file for all classes, or under each class name the
    #: files of that class (several are kept, so that the reader can report which it used).
    paths: Mapping[str, tuple[Path, ...]]
    #: Which region of a file that holds many, as its format counts them; None where a file holds
    #: one.
    item: str | None = None
    #: A folder that links may not lead out of; None if they may lead anywhere.
    within: Path | None = None
    #: How outlines are read.
    rules: OutlineRules = UNSTATED
    #: Where the region lies, if outlines are those of a whole slide; None if they are in px of the
    #: region.
    patch: SlidePatch | None = None
    #: A probability map of the region, whose mean in each object is its score; None if there is
    #: none.
    probability: Path | None = None

    @property
    def object_paths(self) -> tuple[Path, ...]:
        """Every file of objects, in class order."""
        return tuple(path for paths in self.paths.values() for path in paths)

    @property
    def all_paths(self) -> tuple[Path, ...]:
        """Every file: those of objects, in class order, and the probability map."""
        return (*self.object_paths, *([] if self.probability is None else [self.probability]))


@dataclass(frozen=True)
class Region:
    """One image of a patient with its annotation."""

    #: Unique in the cohort.
    name: str
    #: Which patient it belongs to.
    patient: str
    #: The image file, or None if there is none.
    image: Path | None
    #: The annotation, or None if there is none: such a region can be viewed but not evaluated.
    reference: MaskFiles | None
    #: Which image of a file that holds many; None if it holds one.
    image_item: str | None = None
    #: Micrometres per pixel, if the cohort states them; None for those in the image file.
    mpp: float | None = None


@dataclass(frozen=True)
class Team:
    """A team and its predictions."""

    #: Unique in the cohort.
    name: str
    #: True for the annotation's own colour-coded version, which can be scored like a team (to see
    #: what restoration costs) but is none: it stays out of the default selection and of the
    #: ranking.
    is_annotation: bool = False


@dataclass(frozen=True)
class Placement:
    """Position of a region's pixels in a viewer, if layers of the user define one."""

    #: World units per pixel.
    scale_yx: tuple[float, float] = (1.0, 1.0)
    #: World position of the middle of the first pixel.
    translate_yx: tuple[float, float] = (0.0, 0.0)
    #: Names of the world units, (y, x).
    units: tuple[str, str] = ("pixel", "pixel")


@dataclass(frozen=True)
class Cohort(PatientCohort[Region]):
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
        ``(team name, region name)`` -> the formats in which the prediction is
        there. Missing pairs are absent.
    findings
        What was missing, extra or odd in the folder.
    annotation_places, prediction_places
        Where files of each kind are looked for in a folder of this layout, for people:
        ``Teams/TEAM/REGION.geojson``.
    placement
        Where its regions lie in a viewer; None for the micrometres per pixel of each.
    """

    name: str
    root: Path
    scheme: ClassScheme
    regions: tuple[Region, ...]
    teams: tuple[Team, ...]
    predictions: Mapping[tuple[str, str], Mapping[Source, MaskFiles]]
    findings: tuple[Finding, ...] = ()
    annotation_places: tuple[str, ...] = ()
    prediction_places: tuple[str, ...] = ()
    placement: Placement | None = None

    @property
    def all_regions(self) -> tuple[Region, ...]:
        """Its regions."""
        return self.regions

    @property
    def annotation_expected(self) -> str:
        """Where the annotation is expected, for a message if there is none."""
        return expected_at(self.annotation_places)

    @property
    def competing_teams(self) -> tuple[Team, ...]:
        """Teams, except a colour-coded copy of the annotation."""
        return tuple(team for team in self.teams if not team.is_annotation)

    @cached_property
    def forms_of_teams(self) -> Mapping[str, frozenset[Source]]:
        """Team -> the formats in which predictions of it are there."""
        found: dict[str, set[Source]] = {}
        for (team, _), forms in self.predictions.items():
            found.setdefault(team, set()).update(forms)
        return {team: frozenset(forms) for team, forms in found.items()}

    def input_files(self, teams: Container[str] | None = None) -> set[Path]:
        """Return every input file: images, annotations, and all formats of these teams, or of all.

        For an image in Zarr, this is its folder.
        """
        paths = {path for region in self.regions if (path := region.image) is not None}
        sides = [region.reference for region in self.regions if region.reference is not None]
        for (team, _), forms in self.predictions.items():
            sides += forms.values() if teams is None or team in teams else ()
        return paths.union(*(files.all_paths for files in sides))

    def predictions_in(self, region: str) -> list[MaskFiles]:
        """Return the predictions in a region: of all teams, in all their formats."""
        own = [self.predictions.get((team, region), {}) for team in self.forms_of_teams]
        return [files for forms in own for files in forms.values()]


def expected_at(places: Sequence[str]) -> str:
    """Return where missing files are expected."""
    description = "a cohort.toml that says where they are"
    if not places:
        return f"expected is {description}"
    return f"expected are files such as {english_list(places[:4])}, or {description}"
