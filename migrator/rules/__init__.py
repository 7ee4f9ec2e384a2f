"""The rules: one module per TensorFlow 1 concept, each with its codes, its pages and its examples."""
