"""The recognised contents of a folder and the doubts about them, before any evaluation."""
