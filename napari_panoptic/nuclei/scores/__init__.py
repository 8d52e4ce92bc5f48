"""What the scores of predicted objects are worth: precision, calibration, thresholds."""
