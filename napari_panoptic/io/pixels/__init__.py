"""Arrays of numbers in files: decoded as a whole, or window by window."""
