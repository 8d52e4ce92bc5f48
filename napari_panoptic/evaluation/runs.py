"""Runs of equal labels in the lines of an image, for compiled kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_panoptic._compiled import compiled

# Columns of a run. Of one that two lists share, the last two are its places in the lists.
START, END, LABEL = 0, 1, 2
FIRST_PLACE, SECOND_PLACE = 2, 3
# Changes of a line are looked for a word at a time, one byte per pixel.
_WORD = 8
# A word of nothing but changes.
_EVERY_BYTE = np.uint64(0x0101010101010101)
# Times the lowest byte of a word that is 1, this has the byte's place in its highest byte.
_PLACE_OF_BYTE = np.uint64(0x0001020304050607)

Notes = tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.int32]]
"""Of a line: per pixel whether it differs from the one before; words with changes; changes."""


@compiled
def blank_runs(width: int) -> NDArray[np.int32]:
    """Make room for the runs of a line, int32 (m, 4)."""
    return np.empty((width + 1, 4), np.int32)


@compiled
def blank_notes(width: int) -> Notes:
    """Make room for what is noted of a line."""
    words = width // _WORD + 1
    return (
        np.zeros(words * _WORD, np.uint8),
        np.empty(words + 1, np.int32),
        np.empty(width + 1, np.int32),
    )


@compiled
def mark_changes(line: NDArray[np.int32], notes: Notes) -> None:
    """Mark the pixels that differ from the one before; compiles to vector instructions."""
    changed = notes[0]
    for x in range(1, len(line)):
        changed[x] = line[x] != line[x - 1]


@compiled
def list_changes(notes: Notes) -> int:
    """List the places of the changes that are marked, ascending; return how many there are.

    No branch per pixel or word: changes cannot be predicted, and a wrong guess
    costs more than all other work on them.
    """
    changed, places, changes = notes
    words = changed.view(np.uint64)
    n_words = 0
    for place in range(len(words)):
        places[n_words] = place
        n_words += words[place] != 0
    count = 0
    for k in range(n_words):
        word = words[places[k]]
        if word == _EVERY_BYTE:  # as in noise
            for byte in range(_WORD):
                changes[count + byte] = places[k] * _WORD + byte
            count += _WORD
            continue
        while word != 0:
            lowest = word & (~word + np.uint64(1))
            place_of_byte = np.int64((lowest * _PLACE_OF_BYTE) >> np.uint64(56))
            changes[count] = places[k] * _WORD + place_of_byte
            count += 1
            word ^= lowest
    return count


@compiled
def runs_of(line: NDArray[np.int32], notes: Notes, runs: NDArray[np.int32]) -> int:
    """Write the runs of equal labels in a line of at least one pixel, without the background.

    Parameters
    ----------
    line
        int32 (width,): labels, 0 is background.
    notes
        From :func:`blank_notes`, of this width.
    runs
        From :func:`blank_runs`: START, END (half open) and LABEL are written,
        ascending.

    Returns
    -------
    int
        Number of runs.
    """
    mark_changes(line, notes)
    n_changes = list_changes(notes)
    ends = notes[2]
    ends[n_changes] = len(line)
    count, start = 0, np.int32(0)
    for k in range(n_changes + 1):
        label = line[start]
        runs[count, START], runs[count, END], runs[count, LABEL] = start, ends[k], label
        count += label != 0
        start = ends[k]
    return count


@compiled
def shared_runs(
    first: NDArray[np.int32],
    n_first: int,
    second: NDArray[np.int32],
    n_second: int,
    shared: NDArray[np.int32],
) -> int:
    """Write the pixels that the runs of two lists share, run by run.

    Returns
    -------
    int
        Number of shared runs; START, END, FIRST_PLACE and SECOND_PLACE of each
        are written.
    """
    count, i, j = 0, 0, 0
    while i < n_first and j < n_second:
        end, other_end = first[i, END], second[j, END]
        x0 = max(first[i, START], second[j, START])
        x1 = min(end, other_end)
        shared[count, START], shared[count, END] = x0, x1
        shared[count, FIRST_PLACE], shared[count, SECOND_PLACE] = i, j
        count += x0 < x1
        i += end <= other_end
        j += other_end <= end
    return count
