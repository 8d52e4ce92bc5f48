"""Formats that store objects as pixels."""
