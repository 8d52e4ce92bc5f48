"""One table of targets: the name of an input, its reader, its format, and what it begins with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fuzz import documents as doc
from fuzz import goods, readers
from fuzz.judge import Judge, Read
from fuzz.readers import ONE_CLASS, SHAPE, masks, outlines, packed, regions
from napari_panoptic.values.cohort import Source


@dataclass(frozen=True, eq=False)
class Target:
    """A reader, which raises `AssertionError` for a value that is not sound, and its inputs."""

    file: str  # the name of an input on disk
    read: Read
    format: doc.Format
    goods: list[Any] | Callable[[], list[Any]]  # good files, or documents of them
    real: Callable[[], Iterable[bytes]] = tuple  # pieces of real files
    makes_files: bool = False  # whether reading leaves other files in the folder

    @cached_property
    def _goods(self) -> list[Any]:
        return self.goods() if callable(self.goods) else self.goods

    @cached_property
    def good_documents(self) -> list[Any]:
        """The good files as plain values, where their format has these."""
        found = map(self.format.document, self._goods)
        return [document for document in found if document is not None]

    def judge(self) -> Judge:
        """Return the judge of inputs."""
        return Judge(self.read, self.file, makes_files=self.makes_files)

    def document(self, decisions: bytes) -> bytes:
        """Return a file of the right format with mistakes in it."""
        return doc.damaged(self.good_documents, self.format.write, decisions)

    def all_seeds(self) -> list[bytes]:
        """Return the good files."""
        written = (own if isinstance(own, bytes) else self.format.write(own) for own in self._goods)
        return [*written, *self.real()]


def _files(read: Read, good: Callable[[], list[Any]], *, first: bool = True) -> Target:
    """Return a target of which one input is several files; the reader gets the first or all."""
    return Target("a.packed", packed(good, read, first=first), doc.FILES, good, makes_files=True)


def _database(name: str, read: Read, good: Callable[[], list[Any]]) -> Target:
    return Target(name, read, doc.SQLITE, good, makes_files=True)


def _folder(read: Read, good: list[Any]) -> Target:
    return Target("cohort.toml", read, doc.TOML, good, makes_files=True)


_REAL_MASKS = "monusac/MoNuSAC_Testing_Color_Coded_Masks/*/*.tif", "monusac/Teams/*/*/*.tif"
_REAL_SLIDES = "monusac/*/*/*.svs"


def _real(*patterns: str) -> Callable[[], list[bytes]]:
    return lambda: goods.real_files(*patterns)


TARGETS: dict[str, Target] = {
    "imagescope": Target(
        *("a.xml", outlines(Source.IMAGESCOPE), doc.XML, goods.imagescope, goods.real_annotations)
    ),
    "geojson": Target("a.geojson", outlines(Source.GEOJSON), doc.JSON, goods.GEOJSON),
    "hovernet": Target("a.json", outlines(Source.HOVERNET), doc.JSON, goods.HOVERNET),
    "annotation-store": _database(
        "a.db", outlines(Source.ANNOTATION_STORE), goods.annotation_store
    ),
    "imagej-roi": Target(
        *("a.zip", outlines(Source.IMAGEJ_ROI), doc.ROIS, goods.rois),
        lambda: goods.roi_files().values(),
    ),
    "cellvit": Target("a.json", masks(Source.CELLVIT), doc.JSON, goods.CELLVIT),
    "dsa": Target("a.json", masks(Source.DSA), doc.JSON, goods.DSA),
    "asap": Target("a.xml", masks(Source.ASAP), doc.XML, goods.asap),
    "halo": Target("a.annotations", masks(Source.HALO), doc.XML, goods.halo),
    "cellpose-outlines": Target("a.txt", masks(Source.CELLPOSE_OUTLINES), doc.CSV, goods.POINTS),
    "coco-instances": Target(
        "a.json", regions(Source.COCO_INSTANCES, shape=SHAPE), doc.JSON, goods.COCO_INSTANCES
    ),
    "colour-coded": Target(
        *("a_mask.tif", readers.read_colour_coded, doc.PICTURE, goods.colours, _real(*_REAL_MASKS))
    ),
    "labels": Target("a.tif", readers.read_label_image, doc.PICTURE, goods.label_images),
    "cellpose-seg": Target(
        "a_seg.npy", masks(Source.LABELS, ONE_CLASS), doc.PICKLE, goods.segmentations
    ),
    "npz": Target("a.npz", masks(Source.LABELS, ONE_CLASS), doc.NPZ, goods.npz_archives),
    "labels-with-classes": _files(masks(Source.LABELS), goods.classified_labels),
    "zarr": _files(masks(Source.LABELS, ONE_CLASS), goods.zarrs, first=False),
    "pannuke": _files(regions(Source.PANNUKE, ONE_CLASS), goods.arrays),
    "conic": _files(regions(Source.CONIC, ONE_CLASS), goods.arrays),
    "coco-panoptic": _files(regions(Source.COCO_PANOPTIC), goods.coco_panoptic),
    "submission": Target(
        *("a.mat", masks(Source.SUBMISSION, class_name="Epithelial"), doc.MAT, goods.submissions),
        _real("monusac/Submissions/*/*/*/*/*.mat"),
    ),
    "hovernet-mat": Target("a.mat", readers.read_hovernet_mat, doc.MAT, goods.hovernet_mats),
    "slide": Target("a.svs", readers.read_slide, doc.PICTURE, goods.slides, _real(_REAL_SLIDES)),
    "picture": Target("a.png", readers.read_slide, doc.PICTURE, goods.slides, _real(_REAL_SLIDES)),
    "nifti": Target("a.nii", readers.read_nifti, doc.NIFTI, goods.niftis, makes_files=True),
    "volume": Target("a.tif", readers.read_any_volume, doc.PICTURE, goods.volumes),
    "points": Target("a.csv", readers.read_point_file, doc.CSV, goods.POINTS),
    "boxes": Target("a.json", readers.read_box_file, doc.JSON, goods.BOXES),
    "classes-csv": Target("a.csv", readers.read_table, doc.CSV, goods.CLASS_TABLES),
    "classes-json": Target("a.json", readers.read_table, doc.JSON, [{"1": "Epithelial", "2": 2}]),
    "metadata": Target("metadata.csv", readers.read_metadata_csv, doc.CSV, goods.METADATA),
    "dump": Target(
        *("dump.txt", readers.read_dump_file, doc.CSV, goods.DUMPS, goods.real_dump, True)
    ),
    "patches": Target("a.csv", readers.read_patch_table, doc.CSV, goods.PATCHES),
    "cohort": _folder(readers.read_cohort, goods.COHORTS),
    "detection-cohort": _folder(readers.read_detection_cohort, goods.DETECTION_COHORTS),
    "raters-cohort": _folder(readers.read_raters_cohort, goods.RATERS_COHORTS),
    "parts": Target("part", readers.read_part, doc.PART, goods.parts, makes_files=True),
    "review": _database("panoptic-review.sqlite", readers.read_review, goods.reviews),
    "plan": _database("panoptic-review.sqlite", readers.read_plan, goods.plans),
    "preferences": Target("a.json", readers.read_preferences, doc.JSON, goods.preferences),
}
"""Name -> target."""
