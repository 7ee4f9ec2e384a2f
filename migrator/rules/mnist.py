"""The data of the old tutorials: the same arrays, MNIST from Keras and tables from their files."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import is_false, is_none, is_true, string
from migrator.program.parsed import Blocked
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, call_text, expression

_TEXT = '''\
def {name}():
    """Returns MNIST in three parts: {doc}."""
    (images, labels), (test_images, test_labels) = tf.keras.datasets.mnist.load_data()
    images = images.reshape({shape}).astype("float32") * (1.0 / 255.0)
    test_images = test_images.reshape({shape}).astype("float32") * (1.0 / 255.0)
    return types.SimpleNamespace(
        train=types.SimpleNamespace(images=images[{size}:], labels=labels[{size}:]),
        validation=types.SimpleNamespace(images=images[:{size}], labels=labels[:{size}]),
        test=types.SimpleNamespace(images=test_images, labels=test_labels),
    )
'''
_ONE_HOT = "    labels, test_labels = {np}.eye(10)[labels], {np}.eye(10)[test_labels]\n"
_HEADED = '''\
def {name}(filename, target_dtype, features_dtype, target_column=-1):
    """Reads a CSV file whose first line starts with the numbers of its rows and features."""
    with tf.io.gfile.GFile(filename) as file:
        rows = csv.reader(file)
        samples, features = (int(number) for number in next(rows)[:2])
        data = {np}.zeros((samples, features), features_dtype)
        target = {np}.zeros((samples,), target_dtype)
        for index, row in enumerate(rows):
            target[index] = {np}.asarray(row.pop(target_column), target_dtype)
            data[index] = {np}.asarray(row, features_dtype)
    return types.SimpleNamespace(data=data, target=target)
'''
_PLAIN = '''\
def {name}(filename, target_dtype, features_dtype, target_column=-1):
    """Reads a CSV file of examples alone."""
    data, target = [], []
    with tf.io.gfile.GFile(filename) as file:
        for row in csv.reader(file):
            target.append(row.pop(target_column))
            data.append({np}.asarray(row, features_dtype))
    return types.SimpleNamespace(data={np}.array(data), target={np}.array(target, target_dtype))
'''
_CSV = "tf.contrib.learn.datasets.base.load_csv_"
_TABLES = {f"{_CSV}with_header": _HEADED, f"{_CSV}without_header": _PLAIN}
TABLES = frozenset(_TABLES)
_READ = ("train_dir", "fake_data", "one_hot", "dtype", "reshape", "validation_size", "seed", "source_url")
_LOADERS = {
    "tf.contrib.learn.datasets.load_dataset": ("name", "size", "test_with_fake_data"),
    "tf.contrib.learn.datasets.mnist.load_mnist": ("train_dir",),
    "tf.contrib.learn.datasets.mnist.read_data_sets": _READ,
    "tf.examples.tutorials.mnist.input_data.read_data_sets": _READ,
}
LOADERS = frozenset(_LOADERS)
# What a part of the data has beside its two arrays, which the new object has not.
METHODS = ("next_batch", "epochs_completed", "num_examples")
_FOLDER = "the data folder is dropped: Keras keeps MNIST in ~/.keras"


def _load(site: Site) -> cst.BaseExpression:
    new = site.arguments(_LOADERS[site.name], "TFM752")
    if site.name.endswith("load_dataset") and string(new.get("name")) != "mnist":
        raise Blocked("TFM752", site.original, "`load_dataset` supports only MNIST: read the data yourself")
    for key in ("size", "fake_data", "test_with_fake_data", "dtype", "seed", "source_url"):
        if not is_none(new.get(key)) and not is_false(new[key]):
            raise Blocked("TFM752", site.original, f"`{key}` of `{site.name}` is unsupported")
    where = f": {_FOLDER}" if not is_none(new.get("train_dir")) else ""
    message = f"MNIST now comes from `tf.keras.datasets.mnist`, split and scaled as before{where}"
    site.remarks.append(Blocked("TFM751", site.original, message))
    return expression(call_text(site.helper("load_mnist", _text(site, new)), ()))


def _text(site: Site, given: Mapping[str, cst.BaseExpression]) -> str:
    """The function that loads the data as the arguments say."""
    chosen = {}
    for key, usual in (("one_hot", False), ("reshape", True)):
        value = given.get(key)
        if value is not None and not is_true(value) and not is_false(value):
            raise Blocked("TFM752", value, f"`{key}` of `{site.name}` must be a literal True or False")
        chosen[key] = usual if value is None else is_true(value)
    size = given.get("validation_size")
    if size is not None and not isinstance(size, cst.Integer):
        raise Blocked("TFM752", size, f"`validation_size` of `{site.name}` must be a literal number")
    rows = "images as rows of 784 numbers from 0 to 1" if chosen["reshape"] else "images of numbers from 0 to 1"
    text = _TEXT
    if chosen["one_hot"]:
        place = "    return types."
        text = text.replace(place, _ONE_HOT.replace("{np}", _numpy(site)) + place)
    return (
        text.replace("{doc}", f"{rows}, and {'one-hot ' if chosen['one_hot'] else ''}labels")
        .replace("{shape}", "-1, 784" if chosen["reshape"] else "-1, 28, 28, 1")
        .replace("{size}", "5000" if size is None else size.value)
    )


def _numpy(site: Site) -> str:
    """What the file calls NumPy, which it gets where it has none."""
    names = [name for name, origin in site.imports.names.items() if origin == "numpy"] if site.imports else []
    if not names:
        site.training.needs.add("numpy")
    return (names or ["numpy"])[0]


def _table(site: Site) -> cst.BaseExpression:
    """`load_csv_with_header(...)`, by a function of the same name in the user's file."""
    wanted = site.name.rpartition(".")[2]
    name = site.training.helper(wanted, _TABLES[site.name].replace("{np}", _numpy(site)))
    return site.call.with_changes(func=cst.Name(name))


CALLS: dict[str, CallRule] = {**dict.fromkeys(_LOADERS, _load), **dict.fromkeys(_TABLES, _table)}
RULES = (
    Rule(
        "TFM751",
        "MNIST from the tutorials",
        Severity.REVIEW,
        """
`tf.contrib.learn.datasets.load_dataset("mnist")` and `input_data.read_data_sets(folder)` of TensorFlow 1 download four
files and answer with three parts: 55,000 images to train, the first 5,000 of the 60,000 to validate, 10,000 to test, as
rows of 784 float32 numbers (each byte times 1/255) and uint8 labels (with `one_hot`: rows of 10 float64 numbers).
`reshape=False` leaves images of 28 by 28 by 1, `validation_size` divides otherwise. A function in the user's file makes
the same of `tf.keras.datasets.mnist.load_data()`: of the same bytes it makes the same arrays, bit for bit (measured
against TensorFlow 1.15.5). That the archive which Keras downloads holds the same images in the same order was not
compared.
""",
        (
            Example('tf.contrib.learn.datasets.load_dataset("mnist")', "load_mnist()"),
            Example('tf.contrib.learn.datasets.mnist.read_data_sets("data", one_hot=False)', "load_mnist()"),
            Example('tf.contrib.learn.datasets.mnist.read_data_sets("data", one_hot=True)', "load_mnist()"),
        ),
    ),
    Rule(
        "TFM752",
        "datasets of tf.contrib.learn",
        Severity.MANUAL,
        """
`tf.contrib` is gone, and with it its loaders of data. MNIST is supported where only the arrays (`images`, `labels`) of
its parts are used (TFM751), not `next_batch` or fake data. For the others, load the data with `tf.keras.datasets`,
`tensorflow_datasets` or the functions of scikit-learn (`sklearn.datasets.load_iris`, `fetch_california_housing`), and
migrate again. `base.load_csv_with_header` and `load_csv_without_header` become functions of the same names in the
user's file, which give the same arrays (their result has `data` and `target`, and is no tuple).
""",
        (
            Example('tf.contrib.learn.datasets.load_dataset("iris")', None),
            Example('tf.contrib.learn.datasets.mnist.read_data_sets("data", fake_data=True)', None),
        ),
    ),
)
