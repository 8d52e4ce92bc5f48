"""Folders that become cohorts."""
