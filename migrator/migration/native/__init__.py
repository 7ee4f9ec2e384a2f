"""The native form of programs that share files: what becomes of each line, and the new files."""
