"""Verdicts on objects."""
