"""What programs mean: values, the evaluator that finds them, and the training program as printable data."""
