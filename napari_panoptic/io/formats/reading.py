"""Where a reader is: file, region and team of what it refuses, and of what it notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path

from napari_panoptic.common.errors import UnreadableFileError
from napari_panoptic.common.findings import Finding
from napari_panoptic.io.files.guard import check_file
from napari_panoptic.io.pixels.decode import decoding


@dataclass(frozen=True)
class Place:
    """The file that is being read, for which region and team, and what was noted so far."""

    path: Path | None = None
    region: str | None = None
    team: str | None = None
    findings: list[Finding] = field(default_factory=list)

    def located(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Fill in file, region and team where a finding lacks them."""
        return tuple(
            replace(
                finding,
                path=finding.path or self.path,
                region=finding.region or self.region,
                team=finding.team or self.team,
            )
            for finding in findings
        )

    @contextmanager
    def again(self) -> Iterator[None]:
        """Read on later, in windows and in any thread: errors get the same place."""
        with reading(self.path, region=self.region, team=self.team):
            yield


_place: ContextVar[Place] = ContextVar("_place")


@contextmanager
def reading(
    path: Path | None = None,
    what: str = "",
    *others: type[Exception],
    region: str | None = None,
    team: str | None = None,
) -> Iterator[list[Finding]]:
    """Read a file: add the place to findings and errors that lack it, and collect the findings.

    Inside another reading, what is not given is that of the outer one, and the findings go to
    its list. A thread that a reader starts sees no reading, so `note` belongs in its own thread.

    Parameters
    ----------
    path
        The file, or folder.
    what
        What is expected of the file: it is checked to be there and not empty, and errors of
        decoders become refusals. Empty if the reader does this.
    others
        Errors of a decoder beside `napari_panoptic.io.pixels.decode.DECODING_ERRORS`.
    region, team
        Names; the team is None for the reference.

    Yields
    ------
    The findings, in the order in which they were noted.

    Raises
    ------
    UnreadableFileError
        With the file and the region.
    """
    outer = _place.get(Place())
    place = Place(path or outer.path, region or outer.region, team or outer.team, outer.findings)
    token = _place.set(place)
    try:
        with ExitStack() as stack:
            if path is not None and what:
                check_file(path, what)
                stack.enter_context(decoding(path, what, *others))
            yield place.findings
    except UnreadableFileError as error:
        error.path, error.region = error.path or place.path, error.region or place.region
        raise
    finally:
        _place.reset(token)


def note(*findings: Finding) -> None:
    """Report something odd in the file that is being read."""
    place = _place.get()
    place.findings.extend(place.located(findings))


def refuse(message: str, object_id: int | None = None) -> UnreadableFileError:
    """Return the error for the file that is being read, to be raised."""
    return UnreadableFileError(message, object_id=object_id)


def here() -> Place:
    """Return the current place, for what is read later: in windows, in other threads."""
    return _place.get(Place())
