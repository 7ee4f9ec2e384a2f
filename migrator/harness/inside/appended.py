"""Records one behind another in one file: what a step leaves costs no file of its own.

A record is a number (18 digits: when it was taken, in microseconds, or of which step it is), the length of its content
in bytes (12 digits), and the content. Each is appended at once; of a process that is killed all but the last are whole.
``migrator/harness/packed.py`` reads them.
"""

NUMBER, LENGTH = 18, 12


def append(path, number, content):
    """Appends a record to a file."""
    with open(path, "ab") as stream:
        stream.write(("%018d%012d" % (number, len(content))).encode("ascii") + content)


def operation(tf, path, number, content):
    """The operation that appends a record, in the process that runs it; ``number`` is a string tensor of 18 digits.

    A file can be written, but not appended to, by the operations that are for files. The one that prints can.
    """
    length = tf.strings.as_string(tf.strings.length(content), width=LENGTH, fill="0")
    record = tf.strings.join([number, length, content])
    return tf.raw_ops.PrintV2(input=record, output_stream="file://" + path, end="")


def count(tf, path):
    """How many records a file holds when the operations run, where they run; the file has to be there."""
    content = tf.io.read_file(path)
    size = tf.strings.length(content)

    def further(place, _):
        return place < size

    def step(place, number):
        length = tf.strings.to_number(tf.strings.substr(content, place + NUMBER, LENGTH), tf.int32)
        return place + NUMBER + LENGTH + length, number + 1

    return tf.while_loop(further, step, [tf.constant(0), tf.constant(0, tf.int64)])[1]
