"""Figures on paper: tables that other programs read."""
