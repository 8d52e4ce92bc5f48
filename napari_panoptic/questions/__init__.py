"""Questions over a cohort: what failures have in common, versions, scores, suspects, sweeps."""
