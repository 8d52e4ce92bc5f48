"""Suspect annotations of a cohort: where several teams agree, but not with the annotation."""
