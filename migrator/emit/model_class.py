"""A subclass of `tf.keras.Model` for what `compile` cannot be told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def unpack(names: Mapping[str, str], indent: str) -> list[str]:
    """`labels, logits = y, y_pred`: the user's names for what a method of the model is given."""
    pairs = [(name, value) for name, value in names.items() if name != value]
    if not pairs:
        return []
    return [f"{indent}{', '.join(name for name, _ in pairs)} = {', '.join(value for _, value in pairs)}"]


def model_class(name: str, doc: str, methods: Iterable[Sequence[str]], indent: str) -> list[str]:
    """The lines of a class with a docstring and methods (their lines without the class' indentation)."""
    lines = [f"class {name}(tf.keras.Model):", f'{indent}"""{doc}"""']
    for method in methods:
        lines.append("")
        lines += [f"{indent}{line}" if line else "" for line in method]
    return [*lines, ""]


def metric_methods(title: str, updated: Sequence[str], names: Mapping[str, str], indent: str) -> list[list[str]]:
    """`metrics` and `compute_metrics` of a model that updates the metrics in the dict `title` itself.

    `names` are the user's names for features (`x`), labels (`y`) and outputs (`y_pred`) that the updates read. The
    metrics are no attributes of the model: Keras would count their variables among its weights.
    """
    return [
        ["@property", "def metrics(self):", f"{indent}return [*super().metrics, *{title}.values()]"],
        [
            "def compute_metrics(self, x, y, y_pred, sample_weight):",
            *unpack(names, indent),
            *(f"{indent}{line}" if line else "" for line in updated),
            f"{indent}return self.get_metrics_result()",
        ],
    ]


def loss_of_one_output(output: str, indent: str) -> list[str]:
    """`compute_loss` of a model with several outputs whose loss reads one of them."""
    return [
        "def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):",
        f'{indent}return super().compute_loss(x, y, y_pred["{output}"], sample_weight)',
    ]
