"""The docks: one folder or module per panel."""
