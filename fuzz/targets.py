"""One table of targets: the name of an input, its reader, its mutator, and what it begins with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fuzz import documents as doc
from fuzz import goods, readers
from fuzz.judge import Judge, Read
from fuzz.readers import ONE_CLASS, SHAPE, masks, outlines, packed, regions
from napari_panoptic.io.formats.labels.arrays import array_items
from napari_panoptic.io.formats.labels.coco_panoptic import panoptic_items
from napari_panoptic.io.formats.polygons.annotation_store import read_store
from napari_panoptic.io.formats.polygons.coco_instances import instance_items
from napari_panoptic.io.formats.polygons.geojson import read_geojson
from napari_panoptic.io.formats.polygons.hovernet import read_hovernet
from napari_panoptic.io.formats.polygons.imagej_rois import read_rois
from napari_panoptic.io.formats.polygons.imagescope import read_polygons
from napari_panoptic.values.cohort import Source

ARRAY_FILES = ("masks.npy", "ambiguous.npy", "regions.csv", "types.npy", "patch_info.csv")
COCO_FILES = ("panoptic.json", "panoptic/r.png", "panoptic/s.png")
LABEL_FILES = ("labels.npy", "labels.csv", "labels.json")
ZARR_FILES = (
    *("zarr.json", ".zgroup", ".zarray", ".zattrs", "0.0", "0.1", "c/0/0"),
    *("0/.zarray", "0/.zattrs", "0/zarr.json", "0/0.0", "0/0.1", "0/c/0/0"),
    *("labels/.zgroup", "labels/.zattrs", "labels/zarr.json"),
    *("labels/n/.zgroup", "labels/n/.zattrs", "labels/n/0/.zarray", "labels/n/0/0.0"),
)


@dataclass(frozen=True, eq=False)
class Target:
    """A reader, which raises `AssertionError` for a value that is not sound, and its inputs."""

    file: str  # the name of an input on disk
    read: Read
    write: doc.Write  # writes a document
    goods: list[Any] | Callable[[], list[Any]]  # good documents
    seeds: Callable[[], Iterable[bytes]] = tuple  # more good files
    makes_files: bool = False  # whether reading leaves other files in the folder

    @cached_property
    def good_documents(self) -> list[Any]:
        """The good documents."""
        return self.goods() if callable(self.goods) else self.goods

    def judge(self) -> Judge:
        """Return the judge of inputs."""
        return Judge(self.read, self.file, makes_files=self.makes_files)

    def document(self, decisions: bytes) -> bytes:
        """Return a file of the right format with mistakes in it."""
        return doc.document(self.good_documents, self.write, decisions)

    def all_seeds(self) -> list[bytes]:
        """Return the good files, those of the good documents among them."""
        return [*self.seeds(), *(self.write(good) for good in self.good_documents)]


def _pictures(value: Any) -> bytes:
    """Write a TIFF, PNG or NPY document, whichever it is."""
    if isinstance(value, dict):
        return doc.npy_bytes(value) if "header" in value else doc.tiff_bytes(value)
    return doc.png_bytes(value)


def _files(read: Read, good: Callable[[], list[Any]]) -> Target:
    """Return a target of which one input is several files."""
    return Target("a.packed", read, doc.pack_files, good, makes_files=True)


def _folder(read: Read, good: Callable[[], list[Any]]) -> Target:
    return Target("cohort.toml", read, doc.toml_bytes, good, makes_files=True)


TARGETS: dict[str, Target] = {
    "imagescope": Target(
        "a.xml",
        outlines(Source.IMAGESCOPE, read_polygons),
        doc.xml_bytes,
        goods.imagescope,
        goods.real_annotations,
    ),
    "geojson": Target(
        "a.geojson", outlines(Source.GEOJSON, read_geojson), doc.json_bytes, goods.geojson
    ),
    "hovernet": Target(
        "a.json", outlines(Source.HOVERNET, read_hovernet), doc.json_bytes, goods.hovernet
    ),
    "annotation-store": Target(
        "a.db",
        outlines(Source.ANNOTATION_STORE, read_store),
        doc.sqlite_bytes,
        goods.annotation_store,
        tuple,
        True,
    ),
    "imagej-roi": Target(
        "a.zip", outlines(Source.IMAGEJ_ROI, read_rois), doc.roi_bytes, goods.rois, goods.roi_files
    ),
    "cellvit": Target("a.json", masks(Source.CELLVIT), doc.json_bytes, goods.cellvit),
    "dsa": Target("a.json", masks(Source.DSA), doc.json_bytes, goods.dsa),
    "asap": Target("a.xml", masks(Source.ASAP), doc.xml_bytes, goods.asap),
    "halo": Target("a.annotations", masks(Source.HALO), doc.xml_bytes, goods.halo),
    "cellpose-outlines": Target(
        "a.txt", masks(Source.CELLPOSE_OUTLINES), doc.csv_bytes, goods.POINTS
    ),
    "coco-instances": Target(
        "a.json",
        regions(Source.COCO_INSTANCES, instance_items, shape=SHAPE),
        doc.json_bytes,
        goods.coco_instances,
    ),
    "colour-coded": Target(
        "a_mask.tif", readers.read_colour_coded, _pictures, goods.colours, goods.colour_files
    ),
    "labels": Target(
        "a.tif", readers.read_label_image, _pictures, goods.label_images, goods.label_files
    ),
    "cellpose-seg": Target(
        "a_seg.npy",
        masks(Source.LABELS, ONE_CLASS),
        doc.pickle_bytes,
        goods.SEGMENTATIONS,
        goods.segmentation_files,
    ),
    "npz": Target(
        "a.npz", masks(Source.LABELS, ONE_CLASS), doc.npz_bytes, goods.npz_archives, goods.npz_files
    ),
    "labels-with-classes": _files(
        packed(LABEL_FILES, masks(Source.LABELS)), goods.classified_labels
    ),
    "zarr": _files(packed(ZARR_FILES, masks(Source.LABELS, ONE_CLASS), first=False), goods.zarrs),
    "pannuke": _files(
        packed(ARRAY_FILES, regions(Source.PANNUKE, array_items, ONE_CLASS)), goods.arrays
    ),
    "conic": _files(
        packed(ARRAY_FILES, regions(Source.CONIC, array_items, ONE_CLASS)), goods.arrays
    ),
    "coco-panoptic": _files(
        packed(COCO_FILES, regions(Source.COCO_PANOPTIC, panoptic_items)), goods.coco_panoptic
    ),
    "submission": Target(
        "a.mat",
        masks(Source.SUBMISSION, class_name="Epithelial"),
        doc.mat_bytes,
        goods.submissions,
        goods.mat_files,
    ),
    "hovernet-mat": Target("a.mat", readers.read_hovernet_mat, doc.mat_bytes, goods.hovernet_mats),
    "slide": Target("a.svs", readers.read_slide, _pictures, goods.colours, goods.slide_files),
    "picture": Target("a.png", readers.read_slide, _pictures, goods.colours, goods.slide_files),
    "nifti": Target("a.nii", readers.read_nifti, doc.nifti_bytes, goods.niftis, tuple, True),
    "volume": Target(
        "a.tif", readers.read_any_volume, doc.npy_bytes, goods.volumes, goods.volume_files
    ),
    "points": Target("a.csv", readers.read_point_file, doc.csv_bytes, goods.POINTS),
    "boxes": Target("a.json", readers.read_box_file, doc.json_bytes, goods.boxes),
    "classes-csv": Target("a.csv", readers.read_table, doc.csv_bytes, goods.CLASS_TABLES),
    "classes-json": Target(
        "a.json", readers.read_table, doc.json_bytes, [{"1": "Epithelial", "2": 2}]
    ),
    "metadata": Target("metadata.csv", readers.read_metadata_csv, doc.csv_bytes, goods.METADATA),
    "dump": Target(
        "dump.txt", readers.read_dump_file, doc.lines_bytes, goods.DUMPS, goods.real_dump, True
    ),
    "patches": Target("a.csv", readers.read_patch_table, doc.csv_bytes, goods.PATCHES),
    "cohort": _folder(readers.read_cohort, goods.cohorts),
    "detection-cohort": _folder(readers.read_detection_cohort, goods.detection_cohorts),
    "raters-cohort": _folder(readers.read_raters_cohort, goods.raters_cohorts),
    "parts": Target("part", readers.read_part, doc.part_bytes, goods.parts, tuple, True),
    "review": Target(
        "panoptic-review.sqlite", readers.read_review, doc.sqlite_bytes, goods.reviews, tuple, True
    ),
    "preferences": Target("a.json", readers.read_preferences, doc.json_bytes, goods.preferences),
}
"""Name -> target."""
