"""The chain of a label pair, kept up to date during edits."""
