"""Every reader, and what holds for the values that it returns."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.documents import unpack_files
from fuzz.goods import plan_units
from fuzz.judge import Read, check_findings
from napari_panoptic.common.errors import PanopticError
from napari_panoptic.io.cohorts.description import read_description
from napari_panoptic.io.cohorts.detections import open_detection_cohort, read_detection_description
from napari_panoptic.io.cohorts.nuclei import open_cohort
from napari_panoptic.io.cohorts.patches import read_patches
from napari_panoptic.io.cohorts.raters import open_raters
from napari_panoptic.io.cohorts.tasks import task_of
from napari_panoptic.io.formats.class_tables import read_class_table
from napari_panoptic.io.formats.format import LoadedMasks, TiledMasks
from napari_panoptic.io.formats.points.boxes import read_boxes
from napari_panoptic.io.formats.points.point_files import read_atypia, read_points
from napari_panoptic.io.formats.polygons.model import AMBIGUOUS, LARGEST_COORDINATE, PolygonFile
from napari_panoptic.io.formats.registry import (
    known_forms,
    load_masks,
    open_masks,
    reference_shape,
)
from napari_panoptic.io.images.slides import probe_image, read_image
from napari_panoptic.io.images.volumes import (
    SPATIAL,
    Volume,
    read_mask,
    read_probabilities,
    read_volume,
)
from napari_panoptic.io.tables.challenge_dump import read_dump, read_organs
from napari_panoptic.io.tables.metadata import read_metadata
from napari_panoptic.nuclei.regions.result_store import PartStore
from napari_panoptic.review.export import VERDICT_TABLE, verdict_frame, verdict_rows, write_table
from napari_panoptic.review.plan.estimates import estimate
from napari_panoptic.review.plan.goal import PlanSetup
from napari_panoptic.review.store import ReviewStore
from napari_panoptic.review.store import read_review as read_review_file
from napari_panoptic.values.cohort import MONUSAC_CLASSES, ClassScheme, MaskFiles, Source
from napari_panoptic.values.detections import Points
from napari_panoptic.values.labels import LabelImage
from napari_panoptic.values.settings import Restoration

SHAPE = (12, 16)
ONE_CLASS = ClassScheme(("Nucleus",), ((255, 0, 0),))


def one_of(path: Path, ways: int) -> int:
    """Choose a way to read an input, always the same for the same input."""
    content = path.read_bytes() if path.is_file() else b""
    return zlib.crc32(content, len(content)) // 7 % ways


# --- values -------------------------------------------------------------------------------------


def check_labels(labels: LabelImage) -> None:
    used = np.unique(labels.index)
    assert labels.index.dtype == np.int32
    assert labels.index.ndim == 2
    assert np.array_equal(used[used != 0], np.arange(1, len(labels.ids) + 1))
    assert labels.ids.dtype == np.int64
    check_ids(labels.ids)
    assert len(labels.class_index) == len(labels.original_ids) == len(labels.ids)
    assert ((labels.class_index >= 1) & (labels.class_index <= len(labels.class_names))).all()
    for name, mask in labels.class_masks.items():
        assert name in labels.class_names
        assert mask.shape == labels.shape
        assert mask.dtype in (np.int32, np.int64)
        assert mask.min(initial=0) >= 0


def check_ids(ids: Any) -> None:
    assert (np.diff(ids) > 0).all()
    assert (ids > 0).all()


def check_masks(loaded: LoadedMasks) -> None:
    check_labels(loaded.labels)
    if loaded.ambiguous is not None:
        assert (loaded.ambiguous.shape, loaded.ambiguous.dtype) == (loaded.labels.shape, np.bool_)
        assert loaded.ambiguous.any()
    check_mpp(loaded.mpp)
    check_findings(loaded.findings)


def check_tiles(tiles: TiledMasks, whole: LoadedMasks) -> None:
    """Check that windows have the objects that the whole image has."""
    box = (0, 0, *whole.labels.shape)
    ids = np.concatenate([[0], tiles.labels.ids])
    assert np.array_equal(ids[tiles.labels.read(box)], whole.labels.id_image())
    area = None if tiles.ambiguous is None else tiles.ambiguous.read(box)
    none = np.zeros(whole.labels.shape, np.bool_)
    wanted = none if whole.ambiguous is None else whole.ambiguous
    assert np.array_equal(none if area is None else area, wanted)


def check_polygons(file: PolygonFile) -> None:
    polygons = file.polygons
    check_mpp(file.mpp)
    check_findings(file.findings)
    assert np.isfinite(polygons.vertices_xy).all()
    assert (np.abs(polygons.vertices_xy) <= LARGEST_COORDINATE).all()
    rings, objects = polygons.ring_starts, polygons.object_starts
    assert rings[0] == objects[0] == 0
    assert rings[-1] == len(polygons.vertices_xy)
    assert objects[-1] == len(rings) - 1 == len(polygons.is_hole)
    assert (np.diff(rings) >= 0).all()
    assert (np.diff(objects) >= 0).all()
    check_ids(polygons.ids)
    classes = polygons.class_index
    assert len(classes) == len(polygons.ids) == len(objects) - 1
    assert ((classes >= AMBIGUOUS) & (classes <= len(MONUSAC_CLASSES.names))).all()


def check_mpp(*values: float | None) -> None:
    assert all(mpp is None or (math.isfinite(mpp) and mpp > 0) for mpp in values)


def check_volume(volume: Volume) -> None:
    check_findings(volume.findings)
    check_mpp(*(volume.spacing_mm or ()))
    assert volume.values.size
    assert volume.values.ndim >= 2
    assert volume.affine is None or volume.affine.shape == (4, 4)


def check_points(points: Points) -> None:
    assert np.isfinite(points.xy_px).all()
    assert points.xy_px.shape == (len(points.ids), 2)
    assert points.confidence.shape == points.ids.shape
    assert not np.isinf(points.confidence).any()


# --- masks --------------------------------------------------------------------------------------


def load(
    path: Path, source: Source, scheme: ClassScheme = MONUSAC_CLASSES, class_name: str = ""
) -> None:
    """Load masks, and in windows where that can be; now and then of an unknown size."""
    files = MaskFiles(source, {class_name: (path,)})
    if one_of(path, 4) == 0:
        load_whole(files, scheme)
        return
    whole = load_masks(files, scheme, shape=SHAPE)
    check_masks(whole)
    if source not in (Source.COLOUR_CODED, Source.SUBMISSION):
        check_tiles(open_masks(files, scheme, SHAPE), whole)


def masks(source: Source, *options: Any, **more: Any) -> Read:
    """Return a reader of masks, with the options of `load`."""
    return lambda path: load(path, source, *options, **more)


def outlines(source: Source) -> Read:
    """Return a reader of outlines, which draws them every second time."""
    read_polygons = known_forms()[source].outlines

    def read(path: Path) -> None:
        if one_of(path, 2):
            check_polygons(read_polygons(path, MONUSAC_CLASSES))
        else:
            load(path, source)

    return read


def packed(goods: Callable[[], list[dict[str, Any]]], read: Read, *, first: bool = True) -> Read:
    """Return a reader of several files from one input, which is given the first or the folder.

    Only files that one of the good documents has are unpacked.
    """

    def read_packed(path: Path) -> None:
        folder, names = path.parent / "unpacked.zarr", [name for good in goods() for name in good]
        for name, content in unpack_files(path.read_bytes(), names).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        read(folder / names[0] if first else folder)

    return read_packed


def regions(
    source: Source, scheme: ClassScheme = MONUSAC_CLASSES, shape: tuple[int, int] | None = None
) -> Read:
    """Return a reader of files of many regions."""
    items = known_forms()[source].items

    def read(path: Path) -> None:
        for item in islice(items(path), 3):
            name = getattr(item, "name", "x")
            assert name
            name.encode("utf-8")
            files = MaskFiles(source, {"": (path, *getattr(item, "paths", ()))}, item.key)
            load_whole(files, scheme, shape)

    return read


def load_whole(
    files: MaskFiles,
    scheme: ClassScheme = MONUSAC_CLASSES,
    shape: tuple[int, int] | None = None,
    **options: Any,
) -> None:
    """Load masks of the size of the first file, if no other is given."""
    size = shape or reference_shape(None, [files])
    assert size is None or (len(size) == 2 and min(size) >= 0)
    check_masks(load_masks(files, scheme, shape=size, **options))


def read_colour_coded(path: Path) -> None:
    """Read a colour-coded mask, and restore it in some way."""
    radius = one_of(path, 6) - 2
    if radius > 2:
        load(path, Source.COLOUR_CODED)
    else:
        files = MaskFiles(Source.COLOUR_CODED, {"": (path,)})
        load_whole(files, restoration=Restoration.BORDER_DILATED, radius=radius)


def read_label_image(path: Path) -> None:
    """Read a label image: of a single class, of all classes, of one class of several."""
    way = one_of(path, 6)
    if way > 2:
        load(path, Source.LABELS, ONE_CLASS)
    else:
        load(path, Source.LABELS, class_name=("", "Epithelial", "Ambiguous")[way])


def read_hovernet_mat(path: Path) -> None:
    load_whole(MaskFiles(Source.HOVERNET_MAT, {"": (path,)}))


# --- images and volumes -------------------------------------------------------------------------


def read_slide(path: Path) -> None:
    """Read an image with its resolution."""
    if one_of(path, 2):
        info = probe_image(path)
        check_mpp(info.mpp)
        check_findings(info.findings)
        return
    with read_image(path) as image:
        check_mpp(image.mpp)
        check_findings(image.findings)
        assert image.levels[0].shape == (*image.shape, 3)
        for level in image.levels:
            assert level.dtype == np.uint8
            assert level.ndim == 3
            assert np.asarray(level[:8, :8]).shape[2] == 3


def read_nifti(path: Path) -> None:
    """Read NIfTI; now and then compressed, and now and then cut off."""
    way = one_of(path, 5)
    if way < 2:
        content = gzip.compress(path.read_bytes(), 1, mtime=0)
        path = path.with_suffix(".nii.gz")
        path.write_bytes(content[: len(content) - 12 * way])
    read_any_volume(path)


def read_any_volume(path: Path) -> None:
    """Read a file as an image, a mask or a probability map."""
    way = one_of(path, 3)
    if way == 0:
        check_volume(read_volume(path, "an image"))
        return
    volume = (read_mask if way == 1 else read_probabilities)(path, "a file")
    check_volume(volume)
    assert volume.values.ndim in SPATIAL
    assert volume.values.dtype.kind == ("b" if way == 1 else "f")
    assert ((volume.values >= 0) & (volume.values <= 1)).all()


# --- points and tables --------------------------------------------------------------------------


def read_point_file(path: Path) -> None:
    """Read points, or a score of atypia."""
    way = one_of(path, 4)
    if way == 0:
        assert read_atypia(path).score in (None, 1, 2, 3)
        return
    read = read_points(path, shape=SHAPE if way == 1 else None, is_reference=way < 3)
    check_findings(read.findings)
    check_points(read.points)
    assert (np.diff(read.points.ids) > 0).all()


def read_box_file(path: Path) -> None:
    """Read boxes of one category or the other as points."""
    found = read_boxes(path, None if one_of(path, 2) else "hard negative")
    check_findings(found.findings)
    for name in found.names:
        points, _ = found.of(name, path)
        check_points(points)
        assert len(set(points.ids.tolist())) == len(points)


def read_table(path: Path) -> None:
    table = read_class_table(path, MONUSAC_CLASSES)
    check_ids(table.ids)
    classes = table.as_mapping()
    assert all(type(id_) is int and type(name) is str for id_, name in classes.items())
    assert table.names_of(list(classes)) == classes


def read_patch_table(path: Path) -> None:
    for placed in read_patches(path):
        assert placed.region
        assert placed.slide
        assert np.isfinite([placed.patch.x_px, placed.patch.y_px]).all()
        assert 0 < placed.patch.scale < 1000


def read_metadata_csv(path: Path) -> None:
    table = read_metadata(path, ["p1", "p2"])
    check_findings(table.findings)
    assert all(set(cells) <= {"p1", "p2"} for cells in table.columns.values())


def read_dump_file(path: Path) -> None:
    dump = read_dump(path)
    assert dump.figures
    assert all(0 <= figure.pq <= 1 for figure in dump.figures)
    table = path.with_name("organs.csv")
    table.write_text("patient,organ\nP1,Lung\n", encoding="utf-8")
    read_organs(table, dump)


# --- cohorts ------------------------------------------------------------------------------------


def folder(path: Path, opened: Callable[[Path], Any], names: str, *first: Read) -> Any:
    """Open a folder that has these files by its description, after reading that alone."""
    for read in first:
        with suppress(PanopticError):
            read(path)
    for name in names.split():
        (path.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (path.parent / name).touch()
    cohort = opened(path.parent)
    check_findings(cohort.findings)
    return cohort


def read_cohort(path: Path) -> None:
    names = "p1_1.png p1_1.xml a/p1_2.xml teams/t/p1_1.geojson"
    cohort = folder(path, open_cohort, names, lambda own: task_of(own.parent), read_description)
    assert cohort.regions
    assert len({region.name for region in cohort.regions}) == len(cohort.regions)


def read_detection_cohort(path: Path) -> None:
    names = "A_1.png A_1.csv A_1_no.csv a/A_2.png teams/t/A_1.csv"
    cohort = folder(path, open_detection_cohort, names, read_detection_description)
    assert cohort.frames
    for frame in cohort.frames:
        check_mpp(*(frame.mpp_xy or ()))


def read_raters_cohort(path: Path) -> None:
    names = "c-flair.png r1/c_s.png r2/c_s.png r2/c.xml teams/t/c_s.tif d/image.nii.gz "
    names += "d/s_seg01.nii.gz d/s_seg02.nii.gz teams/t/d/s.nii.gz"
    cohort = folder(path, open_raters, names)
    assert all((cohort.cases, cohort.structures, cohort.raters))
    assert all(0 < level <= 1 for level in cohort.settings.levels)


# --- what this program keeps --------------------------------------------------------------------


def read_part(path: Path) -> None:
    """Read a region that an interrupted run kept."""
    store = PartStore(path.parent / "parts")
    place = store._path("r")
    place.parent.mkdir()
    path.rename(place)
    assert type(store.fingerprint("r")) is str
    for results in store.read("r") or ():
        for result in results:
            check_findings(result.findings)


def read_review(path: Path) -> None:
    """Open a review, look at it, and write to it."""
    store = ReviewStore(path, reviewer="me", timeout_s=0.01)
    try:
        check_findings(store.notices)
        store.reviewers()
        store.regions(team="t")
        store.agreement("me", "you")
        store.verdicts(include_others=True)
        store.poll()
        store.recent(20)
        rows = verdict_rows(store.verdicts(include_others=True), lambda _region, _team: None)
        write_table(path.with_suffix(".csv"), VERDICT_TABLE, verdict_frame(rows))
        for record in store.verdicts()[:2]:
            store.withdraw(record)
        store.undo()
        check_findings(store.notices)
    finally:
        store.close()


def read_plan(path: Path) -> None:
    """Open the plan of a review, and estimate figures with it."""
    with ReviewStore(path, reviewer="me", timeout_s=0.01) as review:
        check_findings(review.notices)
        stored = review.plan.stored()
        review.plan.next_item()
        review.plan.agreement("me", "you")
        done = review.plan.progress(is_shared=True)
        assert done.done <= done.total
        review.plan.undo()
    found = read_review_file(path).plan
    if stored is None or found is None:
        return
    assert ((stored.plan.probability > 0) & (stored.plan.probability <= 1)).all()
    PlanSetup.of(stored.settings)
    estimate(stored.plan, plan_units(), found.answers)


def read_preferences(path: Path) -> None:
    """Look at what napari's settings could hold for this plugin."""
    from napari_panoptic.viewer.state.preferences import Preferences

    try:
        values = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return
    values = values if isinstance(values, dict) else {"files": values}
    texts = {("review" if key == "files" else "desk", key): str(v) for key, v in values.items()}
    preferences = Preferences(texts)
    # Whatever this machine's napari remembers.
    preferences._settings = lambda: None  # type: ignore[method-assign]
    assert all((preferences.look, preferences.order, preferences.others))
    assert preferences.last_cohort is None or preferences.last_cohort.is_dir()
    assert preferences.hidden_columns is not None
    chosen = preferences.review_file(Path("/c"))
    assert chosen is None or isinstance(chosen, Path)
