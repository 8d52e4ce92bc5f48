"""The report on a cohort of nuclei, and the tables of its figures."""
