"""Panels for several raters."""
