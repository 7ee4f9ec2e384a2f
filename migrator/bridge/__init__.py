"""The bridge: TensorFlow 1 programs whose model functions stay as they are."""
