"""What the command line does with a cohort of several raters."""
