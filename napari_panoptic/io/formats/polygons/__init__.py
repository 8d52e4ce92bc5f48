"""Formats that store objects as outlines."""
