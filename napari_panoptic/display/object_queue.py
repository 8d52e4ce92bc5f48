"""Objects in the order in which the user goes through them: what is next, and how many."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class QueueGap:
    """Where the user is in a queue: at an object, or between two of them."""

    #: The number of objects before the user.
    before: int
    #: Place of the first object after the user.
    after: int

    @classmethod
    def at(cls, place: int) -> QueueGap:
        """Stand at an object."""
        return cls(place, place + 1)


class ObjectQueue(ABC, Generic[T]):
    """Objects in an order, each once."""

    @abstractmethod
    def __len__(self) -> int:
        """Count the objects."""

    @abstractmethod
    def item(self, place: int) -> T:
        """Return the object at a place, from 0."""

    def step(
        self,
        step: int = 1,
        standing: QueueGap | None = None,
        is_wanted: Callable[[T], bool] | None = None,
        *,
        wraps: bool = False,
    ) -> int | None:
        """Return the place of the next or previous object; None at the end.

        Parameters
        ----------
        step
            1 for the next one, -1 for the previous one.
        standing
            Where the user is; None before the first one, and after the last one.
        is_wanted
            Which objects to consider; None for all.
        wraps
            Whether the first object follows the last one, and the other way round.
        """
        before, after = (len(self), 0) if standing is None else (standing.before, standing.after)
        ahead, behind = range(after, len(self)), range(before)
        if step < 0:
            ahead, behind = behind[::-1], ahead[::-1]
        places = chain(ahead, behind if wraps else ())
        return next((at for at in places if is_wanted is None or is_wanted(self.item(at))), None)


@dataclass(frozen=True)
class ListedQueue(ObjectQueue[T]):
    """A queue of objects that are listed one by one."""

    #: The objects, in their order.
    items: Sequence[T]

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.items)

    def item(self, place: int) -> T:
        """Return the object at a place, from 0."""
        return self.items[place]
