"""The training program as plain data, and the readers that recognise it in a project."""
