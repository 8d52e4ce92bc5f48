"""Questions over the cohort: their inputs, and their answers."""
