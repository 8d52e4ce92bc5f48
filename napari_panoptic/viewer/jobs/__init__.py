"""Work in other threads."""
