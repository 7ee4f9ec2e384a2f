"""What a dotted name in a TensorFlow 1 program means."""
