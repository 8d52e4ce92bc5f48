"""See why a nucleus segmentation failed.

Files of a challenge become regions, a region and a team become a label pair,
the pair becomes outcomes (one per nucleus), and these become figures.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from napari_panoptic.evaluation.evaluate import Evaluation, evaluate_pair
    from napari_panoptic.evaluation.settings import EvaluationSettings

__all__ = ["Evaluation", "EvaluationSettings", "__version__", "evaluate_pair"]

__version__ = "0.1.0"

_PLACES = {
    "Evaluation": "napari_panoptic.evaluation.evaluate",
    "EvaluationSettings": "napari_panoptic.evaluation.settings",
    "evaluate_pair": "napari_panoptic.evaluation.evaluate",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for; to read the version, nobody has to wait for the kernels."""
    if name not in _PLACES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)
