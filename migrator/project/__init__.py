"""A project as the command sees it: what is given, what is around it, what belongs together, what is accepted."""
