"""`tf.logging` to the logger of TensorFlow."""

from __future__ import annotations

import logging

import libcst as cst

from migrator.findings import Severity
from migrator.names.imports import dotted
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, expression

RULES = (
    Rule(
        "TFM242",
        "logging",
        Severity.MIGRATED,
        """
`tf.logging` was the logger that `tf.get_logger()` returns, one of Python's own `logging` module, with the same levels.
""",
        (
            Example("tf.logging.set_verbosity(tf.logging.INFO)", 'tf.get_logger().setLevel("INFO")'),
            Example("tf.logging.set_verbosity(level)", "tf.get_logger().setLevel(level)"),
            Example("tf.logging.get_verbosity()", "tf.get_logger().getEffectiveLevel()"),
            Example('tf.logging.warn("%d steps", n)', 'tf.get_logger().warning("%d steps", n)'),
            Example('tf.logging.log(level, "done")', 'tf.get_logger().log(level, "done")'),
            Example("show(tf.logging.info)", "show(tf.get_logger().info)"),
            Example("show(level=tf.logging.INFO)", "show(level=logging.INFO)"),
        ),
    ),
)

METHODS = {
    "debug": "debug",
    "info": "info",
    "warn": "warning",
    "warning": "warning",
    "error": "error",
    "fatal": "critical",
    "log": "log",
    "vlog": "log",
}
REFERENCES = {f"tf.logging.{name}": f"tf.get_logger().{method}" for name, method in METHODS.items()}
LEVELS = {f"tf.logging.{name}": f"logging.{name}" for name in ("DEBUG", "INFO", "WARN", "ERROR", "FATAL")}
#: All of them by their names, where one is looked up: `tf.logging.__dict__[level]` is a number that `logging` has, too.
NAMES = "tf.logging.__dict__"
#: The same as numbers, for a file in which `logging` is another name.
NUMBERS = {f"tf.logging.{name}": getattr(logging, name) for name in ("DEBUG", "INFO", "WARN", "ERROR", "FATAL")}


def _verbosity(site: Site) -> cst.BaseExpression:
    level = site.originals(("v",), "TFM204")["v"]
    last = (dotted(level) or "").rpartition(".")[2]
    if f"tf.logging.{last}" in LEVELS:
        return expression(f'tf.get_logger().setLevel("{last}")')
    return expression(f"tf.get_logger().setLevel({site.code(site.arguments(('v',), 'TFM204')['v'])})")


def _log(site: Site) -> cst.BaseExpression:
    return site.call.with_changes(func=expression(REFERENCES[site.name]))


def _level(site: Site) -> cst.BaseExpression:
    return expression("tf.get_logger().getEffectiveLevel()")


CALLS: dict[str, CallRule] = {
    "tf.logging.set_verbosity": _verbosity,
    "tf.logging.get_verbosity": _level,
    **dict.fromkeys(REFERENCES, _log),
}
