"""Editing objects and areas."""
