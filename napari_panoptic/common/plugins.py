"""Entry points by which other packages add to this one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points

from napari_panoptic.common.findings import Finding, FindingKind


class Plugins:
    """The entry points of a group, loaded once in a process, when they are first needed.

    Parameters
    ----------
    group
        The group of entry points.
    what
        What each of them names, for messages, such as "format".
    add
        Called with the name of an entry point and its object; an error refuses it.
    """

    def __init__(self, group: str, what: str, add: Callable[[str, object], None]) -> None:
        self._group, self._what, self._add = group, what, add
        self._findings: tuple[Finding, ...] = ()
        self._is_loaded = False
        self.lock = threading.RLock()
        """Held while plugins are added; callers hold it to add to the same."""

    def load(self) -> tuple[Finding, ...]:
        """Load the entry points, unless that was done before; report unusable ones."""
        with self.lock:
            if not self._is_loaded:
                self._is_loaded = True
                self._findings = tuple(self._added())
            return self._findings

    def _added(self) -> Iterator[Finding]:
        # The order in which distributions lie on disk must not decide which one is preferred.
        for point in sorted(entry_points(group=self._group), key=lambda p: (p.name, p.value)):
            try:
                self._add(point.name, point.load())
            except Exception as error:  # noqa: BLE001 - whatever a plugin does, it cannot stop the rest
                distribution = "unknown" if point.dist is None else point.dist.name
                reason = str(error) or type(error).__name__
                yield Finding(
                    FindingKind.BROKEN_PLUGIN,
                    f"the {self._what} '{point.name}' of the package {distribution} cannot be used "
                    f"({reason[:200]}); update or remove that package",
                )
