"""See why a nucleus segmentation failed.

Files of a challenge become regions, a region and a team become a label pair,
the pair becomes outcomes (one per nucleus), and these become figures.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from napari_panoptic.notebook import compare, evaluate_pair, open_cohort, view
    from napari_panoptic.nuclei.evaluate import Evaluation
    from napari_panoptic.values.settings import EvaluationSettings

__all__ = [
    "Evaluation",
    "EvaluationSettings",
    "__version__",
    "compare",
    "evaluate_pair",
    "open_cohort",
    "view",
]

__version__ = "0.1.0"

_PLACES = {
    "Evaluation": "napari_panoptic.nuclei.evaluate",
    "EvaluationSettings": "napari_panoptic.values.settings",
    **dict.fromkeys(
        ("compare", "evaluate_pair", "open_cohort", "view"), "napari_panoptic.notebook"
    ),
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that importing the package is quick."""
    if name not in _PLACES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)
