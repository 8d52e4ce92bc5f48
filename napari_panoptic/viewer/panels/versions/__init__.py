"""An old and a new version of a model compared."""
