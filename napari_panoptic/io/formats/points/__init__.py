"""Formats that store objects as points."""
