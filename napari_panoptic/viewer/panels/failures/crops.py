"""The pictures of the gallery: cut when they are seen, kept for a while, never awaited."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from psygnal import Signal
from qtpy.QtCore import Qt
from qtpy.QtGui import QImage, QPainter, QPixmap

from napari_panoptic.common.errors import PanopticError
from napari_panoptic.display.crop_reader import CropReader, CropSize, crop_of
from napari_panoptic.display.crops import Crop, CropSource, OtherTeam, cut
from napari_panoptic.explain.failures import FailureName
from napari_panoptic.live.session import Session
from napari_panoptic.values.vocabulary import Side
from napari_panoptic.viewer.jobs.jobs import Stream, single_shot, stop_timers

BUDGET_S = 0.012
"""How long crops are cut on the main thread before the window may live again."""
KEPT_BYTES = 2**26
"""Memory of the pictures that are kept."""
_BYTES_PER_PX = 4


@dataclass(eq=False)
class _Order:
    """The crops for the worker; replaced as a whole by the window, emptied by the worker."""

    reader: CropReader | None = None
    size: CropSize = field(default_factory=lambda: CropSize(1, 1))
    wanted: list[FailureName] = field(default_factory=list)

    def next_name(self) -> FailureName | None:
        try:
            return self.wanted.pop(0)
        except IndexError:
            return None


@dataclass(frozen=True, eq=False)
class _Cut:
    """A picture from the worker, of the size that was wanted then."""

    name: FailureName
    size: CropSize
    reader: CropReader
    picture: QImage | None


class Crops:
    """Pictures of failures, of the shown region and of any other.

    Those of the shown region, and of regions with edits, are cut on the main thread,
    a few at a time, since edits change their objects; those of others in a worker.
    """

    changed = Signal()

    def __init__(self) -> None:
        self._kept: OrderedDict[FailureName, QPixmap] = OrderedDict()
        self._stale: set[FailureName] = set()
        self._order = _Order()
        self._live: Callable[[FailureName], CropSource | None] = lambda _name: None
        self._nearby: list[FailureName] = []
        self._stream: Stream[_Cut] = Stream(self._on_cut, ended=self._go_on)
        self._timer = single_shot(0, self._cut_some)

    @property
    def is_busy(self) -> bool:
        """Whether pictures that are wanted are still to come."""
        return bool(self._nearby) or self._stream.is_busy

    @property
    def size(self) -> CropSize:
        """The size of crops."""
        return self._order.size

    def __len__(self) -> int:
        """Count the pictures that are kept."""
        return len(self._kept)

    def use(
        self, reader: CropReader | None, live: Callable[[FailureName], CropSource | None]
    ) -> None:
        """Cut from other files, and drop all pictures.

        Parameters
        ----------
        reader
            Reads all other regions.
        live
            Returns the source of a failure in the shown region, or in one with
            edits; None for others.
        """
        self.stop()
        self._stream.stop()
        self._order = _Order(reader, self._order.size)
        self._live = live
        self._kept.clear()
        self._stale.clear()

    def resize(self, size: CropSize) -> None:
        """Cut all crops again in another size; the old ones are shown until then."""
        self._order.size = size
        self.outdate()

    def outdate(self, is_outdated: Callable[[FailureName], bool] = lambda _name: True) -> None:
        """Cut crops again when they are seen; the old ones are shown until then."""
        self._stale |= {name for name in self._kept if is_outdated(name)}

    def picture(self, name: FailureName) -> QPixmap | None:
        """Return the picture of a failure, if there is one."""
        return self._kept.get(name)

    def want(self, names: Sequence[FailureName]) -> None:
        """Cut the missing ones of these, instead of those wanted before."""
        missing = [name for name in names if name not in self._kept or name in self._stale]
        for name in names:
            if name in self._kept:
                self._kept.move_to_end(name)
        self._nearby = [name for name in missing if self._live(name) is not None]
        near = set(self._nearby)
        far = [name for name in missing if name not in near]
        # Each region is read once.
        places = {(name.region, name.team): n for n, name in reversed(list(enumerate(far)))}
        self._order.wanted = sorted(far, key=lambda name: places[name.region, name.team])
        if self._nearby:
            self._timer.start()
        self._go_on()

    def stop(self) -> None:
        """Cut nothing more."""
        self._order.wanted, self._nearby = [], []
        stop_timers(self._timer)

    def close(self) -> None:
        """Cut nothing more, and release files and pictures."""
        self.use(None, lambda _name: None)

    def _go_on(self) -> None:
        order = self._order
        if order.wanted and order.reader is not None and not self._stream.is_busy:
            self._stream.start(lambda *_job: _pictures(order))

    def _on_cut(self, cut: _Cut) -> None:
        is_current = cut.reader is self._order.reader and cut.size == self._order.size
        # Edits may have changed a shown region by now.
        if is_current and self._live(cut.name) is None:
            self._keep(cut.name, cut.picture)
            self.changed.emit()

    def _cut_some(self) -> None:
        end = time.perf_counter() + BUDGET_S
        while self._nearby and time.perf_counter() < end:
            name = self._nearby.pop(0)
            source = self._live(name)
            if source is None:  # another region is shown by now: its file has the object
                self._order.wanted.append(name)
                continue
            crop = crop_of(source, name, self.size)
            self._keep(name, None if crop is None else picture_of(crop, self.size.size_px))
        if self._nearby:
            self._timer.start()
        self._go_on()
        self.changed.emit()

    def _keep(self, name: FailureName, picture: QImage | None) -> None:
        # An empty pixmap: there is nothing to show, and no need to try again.
        pixmap = QPixmap() if picture is None else QPixmap.fromImage(picture)
        pixmap.setDevicePixelRatio(self.size.per_point)
        self._kept.pop(name, None)
        self._kept[name] = pixmap
        self._stale.discard(name)
        most = max(KEPT_BYTES // (_BYTES_PER_PX * self.size.size_px**2), 100)
        while len(self._kept) > most:
            self._stale.discard(self._kept.popitem(last=False)[0])


class LiveSources:
    """The sources of crops of the shown region, and of regions with edits.

    Regions with edits differ from their files, which may lack the object of a failure.
    """

    def __init__(self) -> None:
        # Region and team -> source: now, and when `changed` was asked last.
        self._now: dict[tuple[str, str], CropSource] = {}
        self._used = self._now

    def clear(self) -> None:
        """Forget regions that are not shown."""
        self._now = {}

    def note(self, session: Session) -> None:
        """Take over the shown region; also before a region with edits is left."""
        snapshot = session.snapshot
        self._now = {at: own for at, own in self._now.items() if session.has_edits(at[0])}
        if snapshot is not None:
            for team, found in snapshot.evaluations.items():
                self._now[snapshot.region.name, team] = CropSource.of(snapshot.image, found)

    def of(self, name: FailureName, outlined: Sequence[str]) -> CropSource | None:
        """Return the source of a failure, with the objects of other teams; None if not live."""
        source = self._now.get((name.region, name.team))
        others = [self._now.get((name.region, team)) for team in outlined]
        beside = tuple(
            OtherTeam(other.prediction, other.outcomes.prediction.bbox)
            for other in others
            if other is not None
        )
        return replace(source, beside=beside) if source is not None and beside else source

    def changed(self) -> frozenset[tuple[str, str]]:
        """Return the regions and teams with another source than when this was asked last."""
        before, self._used = self._used, self._now
        return frozenset(at for at, now in self._now.items() if not _is_same(before.get(at), now))


def _is_same(one: CropSource | None, other: CropSource) -> bool:
    return one is not None and (
        one.image is other.image
        and one.reference is other.reference
        and one.prediction is other.prediction
        and one.outcomes is other.outcomes
    )


def _pictures(order: _Order) -> Iterator[_Cut]:
    reader = order.reader
    while reader is not None and (name := order.next_name()) is not None:
        size = order.size
        crop = reader.crop(name, size)
        picture = None if crop is None else picture_of(crop, size.size_px)
        yield _Cut(name, size, reader, picture)


def crop_picture(
    source: CropSource, side: Side, row: int, *, field_px: int, size_px: int, per_point: float
) -> QImage:
    """Draw an object and its surroundings, with both outlines.

    Parameters
    ----------
    source, side, row, field_px, size_px, per_point
        As in `napari_panoptic.display.crops.cut`. Where the image cannot be read, the
        outlines are drawn on grey.
    """
    try:
        crop = cut(source, side, row, field_px=field_px, size_px=size_px, per_point=per_point)
    except PanopticError:  # a damaged place in the slide
        source = replace(source, image=None)
        crop = cut(source, side, row, field_px=field_px, size_px=size_px, per_point=per_point)
    return picture_of(crop, size_px)


def picture_of(crop: Crop, size_px: int) -> QImage:
    """Draw the outlines of a crop over its tissue.

    Parameters
    ----------
    crop
        The crop.
    size_px
        Its width on the screen.
    """
    height, width, _ = crop.tissue.shape
    ground = QImage(crop.tissue.tobytes(), width, height, 3 * width, QImage.Format.Format_RGB888)
    picture: QImage = ground.scaled(
        size_px,
        size_px,
        Qt.AspectRatioMode.IgnoreAspectRatio,
        Qt.TransformationMode.SmoothTransformation,
    ).convertToFormat(QImage.Format.Format_RGB32)
    lines = crop.outlines.tobytes()
    outlines = QImage(lines, size_px, size_px, 4 * size_px, QImage.Format.Format_RGBA8888)
    painter = QPainter(picture)
    painter.drawImage(0, 0, outlines)
    painter.end()
    return picture
