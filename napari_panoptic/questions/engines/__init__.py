"""What computes the answers to questions about a cohort."""
