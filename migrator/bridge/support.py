"""What the file is called that bridged programs run on, and how it is known again."""

#: The name of its module, where the project has no other of that name.
NAME = "keras_estimator"
#: What it says of itself.
MARK = "tf-migrate wrote this file when the project left TensorFlow 1"
