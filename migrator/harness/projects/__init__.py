"""All programs of a project: which there are, their originals out of git, one verification of all."""
