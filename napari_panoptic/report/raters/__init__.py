"""The report on a cohort of several raters, and the tables of its figures."""
