"""Bytes in, bytes out: finding the files, decoding them, and putting new text in their place."""
