"""The state of a desk: the one owner of the user's choices of what to see, and how. No Qt here.

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
from napari_panoptic.viewer.state.preferences import (
    Preferences,
    Queue,
    ToolInHand,
    VersionChoice,
    ViewMode,
)


@dataclass(eq=False)
class DeskState:
    """The user's choices; each field has an event of the same name."""

    events: ClassVar[SignalGroupDescriptor] = SignalGroupDescriptor()

    #: Name of the workspace; empty before one is shown.
    workspace: str = ""
    #: How objects are drawn.
    look: Look = field(default_factory=Look)
    #: Which objects the table lists.
    object_filter: ObjectFilter = field(default_factory=ObjectFilter)
    #: What makes one failure worse than another.
    order: WorstFirst = WorstFirst.IMPACT
    #: How the image shows objects that are not listed.
    others: Others = Others.SHOWN
    #: How the next failure is found.
    queue: Queue = Queue.COHORT
    #: Whether the next failure is brought into view.
    follow: bool = True
    #: Whether large regions have an overview.
    overview: bool = True
    #: Names of the columns that the object table does not show.
    hidden_columns: frozenset[str] = frozenset()
    #: The view on the canvas in the workspace for teams.
    team_view: ViewMode = ViewMode.GRID
    #: Which teams are compared as versions, and where.
    versions: VersionChoice = field(default_factory=VersionChoice)
    #: The action of the mouse on points.
    tool: ToolInHand = field(default_factory=ToolInHand)
    #: The view on the canvas now; follows the workspace, and is not restored.
    mode: ViewMode = field(default=ViewMode.ONE, metadata={"is_kept": False})
    #: Whether teams and statuses are hidden from a reviewer; not restored.
    is_blind: bool = field(default=False, metadata={"is_kept": False})
    #: Name of the reviewer in this window; requested at each start.
    reviewer: str = field(default="", metadata={"is_kept": False})
    #: Id of the window, by which it knows its verdicts in a shared file.
    window: str = field(default_factory=lambda: uuid4().hex, metadata={"is_kept": False})

    @classmethod
    def restored(cls, preferences: Preferences) -> DeskState:
        """Return the state of the last window; from now on, preferences follow its changes."""
        names = [each.name for each in fields(cls) if each.metadata.get("is_kept", True)]
        state = cls(**{name: getattr(preferences, name) for name in names})
        for name in names:
            getattr(state.events, name).connect(partial(setattr, preferences, name))
        return state
