"""TensorFlow 1 checkpoints to the weights of migrated programs, and back, by one map of names."""
