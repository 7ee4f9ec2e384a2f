"""Distribution strategies: how each is set up and how a program trains under it. One module per strategy."""
