"""What can be asked about one region, one module each."""
