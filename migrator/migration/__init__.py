"""The migration of a project: its programs are read, and written in groups that share files."""
