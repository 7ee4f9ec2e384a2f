"""The source of the support module, in pieces: each a top-level definition that the assembler can take alone."""
