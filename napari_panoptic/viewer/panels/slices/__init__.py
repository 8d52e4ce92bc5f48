"""What the failures of a cohort have in common: slices of objects that fail more than others."""
