"""What was recognised in a folder, before anything is evaluated, and what is doubtful in it."""
