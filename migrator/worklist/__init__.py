"""What is left to do in a project: its programs, what becomes of each, and what stands in the way."""
