"""Figures from label images: values in, values out; no files, no interface."""
