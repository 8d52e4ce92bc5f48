"""What a window shows and edits, without Qt: snapshots of regions, edits, and the session."""
