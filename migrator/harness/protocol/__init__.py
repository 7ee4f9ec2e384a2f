"""The equivalence protocol: recordings in, level results and a verdict out. No TensorFlow, no processes, no
terminal.
"""
