"""Teams that are compared without a window."""

from napari_panoptic.display.regions.here import Here
from napari_panoptic.display.regions.teams import teams_answer
from napari_panoptic.explain.consensus import consensus
from napari_panoptic.viewer.panels.teams import TeamsComparison


def compared_teams(evaluations):
    """Return what the panel of teams shows of evaluations of one region."""
    result, here = consensus(evaluations), Here("", next(iter(evaluations)), evaluations)
    answer = teams_answer(here, result)
    return TeamsComparison(snapshot=None, here=here, answer=answer, consensus=result)
