"""The page of a review package."""
