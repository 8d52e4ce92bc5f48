"""Verdicts of reviewers: identity of objects and the SQLite store."""
