"""Comparison of an old and a new version of a model."""
