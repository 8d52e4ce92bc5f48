"""Points instead of outlines: cohort, pairing, curve, evaluation."""
