"""The ranking of teams."""
