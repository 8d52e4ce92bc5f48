"""The napari layers that the desks create."""
