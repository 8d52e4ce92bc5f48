"""A planned review: the population of items, the sample, and what its verdicts estimate."""
