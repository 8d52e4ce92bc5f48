"""A window's contents and edits, without Qt: snapshots of regions, edits, and the session."""
