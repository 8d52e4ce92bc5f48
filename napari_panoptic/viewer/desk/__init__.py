"""The desks: docks around the image, and what connects them to a cohort."""
