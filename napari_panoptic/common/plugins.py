"""Entry points by which other packages add to this one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import entry_points

from napari_panoptic.common.findings import Finding, FindingKind


def add_plugins(group: str, what: str, add: Callable[[str, object], None]) -> Iterator[Finding]:
    """Add what packages bring; report what cannot be used.

    Parameters
    ----------
    group
        The group of entry points.
    what
        What each of them names, for messages, such as "format".
    add
        Called with the name of an entry point and what it names; an error refuses it.
    """
    # The order in which distributions lie on disk must not decide which one is preferred.
    for point in sorted(entry_points(group=group), key=lambda p: (p.name, p.value)):
        try:
            add(point.name, point.load())
        except Exception as error:  # noqa: BLE001 - whatever a plugin does, it cannot stop the rest
            distribution = "unknown" if point.dist is None else point.dist.name
            reason = str(error) or type(error).__name__
            yield Finding(
                FindingKind.BROKEN_PLUGIN,
                f"the {what} '{point.name}' of the package {distribution} cannot be used "
                f"({reason[:200]}); update or remove that package",
            )
