"""Files: limits and links, reading XML, complete replacement, locks, fingerprints."""
