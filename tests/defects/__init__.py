"""Defects that were fixed, one module per number."""
