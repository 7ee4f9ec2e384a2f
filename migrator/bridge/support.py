"""What the file is called that bridged programs run on, and how it is known again."""

#: The name of its module, where the project has no other of that name.
NAME = "keras_estimator"
#: What it says of itself.
MARK = "tf-migrate wrote this file when the project left TensorFlow 1"
#: What it says of itself where it stands inside of a program that came without a place for files.
MARK_INSIDE = "tf-migrate wrote this section when the program left TensorFlow 1"
