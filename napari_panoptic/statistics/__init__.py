"""Tests, ranks and intervals: arrays in, values out."""
