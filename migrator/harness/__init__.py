"""The judge: runs the original and the migrated program and compares what they did."""
