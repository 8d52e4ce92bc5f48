"""Two of the user's own layers, compared."""
