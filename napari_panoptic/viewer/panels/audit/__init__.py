"""The audit of ambiguous policies."""
