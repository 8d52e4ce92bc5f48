"""The report on a cohort of detections, and the tables of its figures."""
