"""Readers: what is on disk becomes plain values. No napari, no Qt."""
