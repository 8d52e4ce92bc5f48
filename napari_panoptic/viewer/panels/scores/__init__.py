"""What the scores of a team are worth, and the region without predictions of low score."""
