"""The failure gallery."""
