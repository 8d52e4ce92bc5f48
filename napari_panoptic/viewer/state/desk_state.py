"""The state of a desk: the one owner of what the user chose to see, and how. No Qt here.

The session owns what is evaluated (cohort, region, team, settings, selection, edits). Panels,
layers and the command palette change the fields below and follow their events; nothing else
keeps a copy that could differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import partial
from typing import ClassVar
from uuid import uuid4

from psygnal import SignalGroupDescriptor

from napari_panoptic.display.listed import Others
from napari_panoptic.display.object_rows import ObjectFilter, WorstFirst
from napari_panoptic.display.styles import Look
from napari_panoptic.viewer.state.modes import ToolInHand, VersionChoice, ViewMode
from napari_panoptic.viewer.state.preferences import Preferences, Queue


@dataclass(eq=False)
class DeskState:
    """What the user chose to see; each field has an event of the same name.

    Parameters
    ----------
    workspace
        Name of the workspace; empty before one is shown.
    look
        How objects are drawn.
    object_filter
        Which objects the table lists.
    order
        What makes one failure worse than another.
    team_view
        What the canvas shows in the workspace for teams.
    versions
        Which teams are compared as versions, and where.
    tool
        What the mouse does on points.
    mode
        What the canvas shows now; follows the workspace, and is not restored.
    is_blind
        Whether teams and statuses are hidden from a reviewer; not restored.
    reviewer
        Who reviews in this window; asked for at each start.
    window
        Id of the window, by which it knows its verdicts in a shared file.
    others
        How the image shows objects that are not listed.
    queue
        How the next failure is found.
    follow
        Whether the next failure is brought into view.
    hidden_columns
        Names of the columns that the object table does not show.
    """

    events: ClassVar[SignalGroupDescriptor] = SignalGroupDescriptor()

    workspace: str = ""
    look: Look = field(default_factory=Look)
    object_filter: ObjectFilter = field(default_factory=ObjectFilter)
    order: WorstFirst = WorstFirst.IOU
    others: Others = Others.SHOWN
    queue: Queue = Queue.REGION
    follow: bool = True
    hidden_columns: frozenset[str] = frozenset()
    team_view: ViewMode = ViewMode.GRID
    versions: VersionChoice = field(default_factory=VersionChoice)
    tool: ToolInHand = field(default_factory=ToolInHand)
    mode: ViewMode = field(default=ViewMode.ONE, metadata={"is_kept": False})
    is_blind: bool = field(default=False, metadata={"is_kept": False})
    reviewer: str = field(default="", metadata={"is_kept": False})
    window: str = field(default_factory=lambda: uuid4().hex, metadata={"is_kept": False})

    @classmethod
    def restored(cls, preferences: Preferences) -> DeskState:
        """Return the state of the last window; from now on, preferences follow its changes."""
        names = [each.name for each in fields(cls) if each.metadata.get("is_kept", True)]
        state = cls(**{name: getattr(preferences, name) for name in names})
        for name in names:
            getattr(state.events, name).connect(partial(setattr, preferences, name))
        return state
