"""The built-in sample cohorts."""
