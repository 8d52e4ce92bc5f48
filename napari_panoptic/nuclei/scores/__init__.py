"""The quality of the scores of predicted objects: precision, calibration, thresholds."""
