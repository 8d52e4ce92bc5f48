"""The plan of a review in the window: ask for a goal, review its items, show the estimates."""
