"""The object table."""
