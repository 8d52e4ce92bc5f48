"""The tables and the text of ``napari-panoptic dump``, for an organisers' output."""
