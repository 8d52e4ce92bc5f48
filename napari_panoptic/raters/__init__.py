"""Structures outlined by several raters."""
