"""Several teams compared."""
