"""From the files of a cohort to evaluated regions, and all regions of a cohort in one run."""
