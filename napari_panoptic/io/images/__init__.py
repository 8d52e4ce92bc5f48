"""Images of tissue as values: slides, pictures, OME files, volumes, and their levels."""
