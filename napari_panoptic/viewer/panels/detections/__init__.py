"""Panels for detections."""
