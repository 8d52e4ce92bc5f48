"""See why a nucleus segmentation failed.

Files of a challenge become regions, a region and a team become a label pair,
the pair becomes outcomes (one per nucleus), and these become figures.
"""

from napari_panoptic.evaluation.evaluate import Evaluation, evaluate_pair
from napari_panoptic.evaluation.settings import EvaluationSettings

__all__ = ["Evaluation", "EvaluationSettings", "__version__", "evaluate_pair"]

__version__ = "0.1.0"
