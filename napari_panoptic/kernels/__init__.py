"""Compiled code: loops over pixels."""
