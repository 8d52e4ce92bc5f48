"""The failures of a cohort: a gallery of crops, in sections."""
