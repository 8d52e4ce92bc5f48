"""The desk's state that outlives a window."""
