"""Small widgets and helpers that all panels share."""
