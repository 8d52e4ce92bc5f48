"""What is known of an object: its features, each declared once."""
