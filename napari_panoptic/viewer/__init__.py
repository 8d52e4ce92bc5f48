"""The desk in napari: the only room that knows napari and Qt."""
