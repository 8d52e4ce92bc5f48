"""Formats of objects: the registry, and reading and writing."""
