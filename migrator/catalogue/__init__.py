"""What becomes of each TensorFlow 1 symbol that a rule knows, and how far old and new are apart."""
