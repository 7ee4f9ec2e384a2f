"""DTensor programs of TensorFlow 2.9 to 2.15: what moved until 2.21, and what goes wrong in them without an error.

The names of 2.9.3 are those of its wheel. The figures were measured on 2.15.1 and on 2.21 (tf_keras 2.21) with 8
virtual CPUs, and those without Keras on 2.11.1 too; all gave the same numbers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import partial

import libcst as cst

from migrator.findings import Severity
from migrator.names.bare import says
from migrator.names.imports import canonical, dotted
from migrator.program.calls import calls_in, number
from migrator.program.modern import Change, ModernFile, is_edit_of, keyword
from migrator.rules.rule import Example, Rule
from migrator.walking import of_kinds, walk

RULES = (
    Rule(
        "TFM770",
        "DTensor names that moved since TensorFlow 2.9",
        Severity.MIGRATED,
        """
`initialize_multi_client`, `initialize_tpu_system` and `shutdown_tpu_system` of TensorFlow 2.9 are
`initialize_accelerator_system` and `shutdown_accelerator_system`; the old names are still there, but their first
argument is a device type now and was `enable_coordination_service`. `run_on` is `default_mesh`. In Keras,
`layout_map_scope(layouts)` is `layouts.scope()` (gone in 2.15 and in tf_keras 2.21), and the fifth positional argument
of Adam, `amsgrad`, is another one in tf_keras 2.21 (`adaptive_epsilon`): it gets its name.
""",
        (
            Example(
                "tf.experimental.dtensor.initialize_multi_client(True)",
                "tf.experimental.dtensor.initialize_accelerator_system(enable_coordination_service=True)",
            ),
            Example("tf.experimental.dtensor.run_on(mesh)", "tf.experimental.dtensor.default_mesh(mesh)"),
            Example("keras.dtensor.experimental.layout_map_scope(layouts)", "layouts.scope()"),
        ),
    ),
    Rule(
        "TFM771",
        "removed DTensor names",
        Severity.MANUAL,
        """
Arguments and methods that DTensor had in TensorFlow 2.9 to 2.11 and that 2.21 does not have; the message says what
takes their place.
""",
        (
            Example("tf.experimental.dtensor.Layout.from_str(text)", None),
            Example("tf.experimental.dtensor.create_distributed_mesh([('batch', 8)], num_global_devices=8)", None),
        ),
    ),
    Rule(
        "TFM772",
        "the shape of a layout is its mesh's",
        Severity.REVIEW,
        """
`layout.shape` was the number of shards along each axis of the tensor in TensorFlow 2.9 to 2.11. It is the shape of the
mesh now: `Layout(["batch", "unsharded"], mesh).shape` of a mesh `[("model", 2), ("batch", 4)]` is `[4, 1]` on 2.11.1,
and `[2, 4]` on 2.15.1 and 2.21. Code that splits a batch by `layout.shape[axis]` then
splits it by another dimension's size wherever the order of the mesh is not that of the tensor's axes: with
`[("model", 4), ("batch", 2)]` half of every batch is left out without an error. `layout.num_shards(axis)` has the older
meaning in all versions.
""",
        (
            Example(
                "tf.experimental.dtensor.fetch_layout(x).shape[0]",
                "tf.experimental.dtensor.fetch_layout(x).num_shards(0)",
            ),
        ),
    ),
    Rule(
        "TFM773",
        "a step counter that tracing has frozen",
        Severity.REVIEW,
        """
An optimizer written by hand that counts its steps in a Python number counts how often it was traced: the body of a
`tf.function` runs as Python only then. Adam's bias corrections keep the values of its first step or two. Measured with
Adam over 120 steps: the counter stood at 2.0 with one trace (at 3.0 where the first call makes variables and is traced
twice), the losses were up to 0.58 from those of Adam, on a loss of 1 to 4, and the weights moved 1.4 times as far.
With a variable in the counter's place the losses are within 1e-5 of Adam's. Told of attributes, of entries of a dict,
and of `global` and `nonlocal` names.

The program is left as it is, because it would train to other weights. What counts steps is

```python
self.t = dtensor.DVariable(dtensor.call_with_layout(tf.ones, dtensor.Layout.replicated(mesh, rank=0), shape=[]))
...
self.t.assign_add(1.0)
```
""",
    ),
    Rule(
        "TFM774",
        "a size that is set again before it is used",
        Severity.REVIEW,
        """
Two constants of one name in a row, or under one key of a dict: the first value is never used. In a list of layer
widths this makes a layer that is not the one that was meant (a second hidden layer as wide as the output, for example),
and the figures that such a program prints belong to that network. Left as it is: give one of the two another name if it
was not meant.
""",
    ),
    Rule(
        "TFM775",
        "batches that are not divisible by the mesh",
        Severity.REVIEW,
        """
Every device of a mesh holds an equal share of a batch. A batch of 12 over 8 devices raises: `relayout`, `copy_to_mesh`
and `call_with_layout` with UnknownError ("requires dimension 0 to be divisible"), `tf.split` with InvalidArgumentError,
`pack` of unequal pieces with UnimplementedError. The last batch of a data set is such a one, unless it happens to
divide or `batch` has `drop_remainder=True`. Where the file gives all the numbers and the last batch does not divide,
`drop_remainder=True` is added: the program could not have trained that step.
""",
    ),
    Rule(
        "TFM777",
        "gradients whose layout differs from their variables'",
        Severity.REVIEW,
        """
A value that is assigned to a variable and read again in the same step is the old one where its layout is not that of
the variable, on a DTensor mesh. Optimizers do this with their moments: Keras' (SGD keeps one, too) and those written by
hand. No error is raised. Two dense layers on a mesh of 4 x 2 (or of 8), the loss of the second step, the same on 2.15.1
and 2.21 (by hand on 2.11.1, too):

| optimizer | kernels | one device | mesh |
|---|---|---|---|
| Adam of Keras | whole on every device | 2.51872 | 2.54024 |
| Adam of Keras | the first split over `model`, the second whole | 2.51872 | 351.23 |
| SGD of Keras | whole on every device | 2.55472 | 2.56460 |
| Adam by hand | the first split, the second whole | 2.51871 | 11114 |

`variable.assign_sub(rate * gradient)` is right in all of them. Laying the gradients out before they are applied gave
the values of one device on 2.21 in every case above:

```python
gradients = [dtensor.relayout(gradient, variable.layout) for gradient, variable in zip(gradients, variables)]
```

It is not enough everywhere: on 2.15.1 it helped Keras' Adam where the kernel is split, and not where everything is
whole; on 2.21, with an L2 regularizer in the loss, Adam stayed 8 to 10 % off from the second step on, and Adagrad 17 %.
Calling `optimizer.apply_gradients` outside of the `tf.function` that computes the gradients was exact wherever it was
tried (momentum, Adam, Adagrad and RMSProp; Adam and momentum with L2 too). The program is left as it is: mending it
makes it train to other weights, the right ones.
""",
    ),
    Rule(
        "TFM778",
        "a metric on DTensors without a mesh",
        Severity.REVIEW,
        """
A Keras metric without `mesh=` that is updated with DTensors reports nonsense, and no error: an accuracy of 0.5625 came
out as 0.087 or 0.075 in a `tf.function`, as 4.5 or 6.19 outside of one, and other values in other runs (measured on
2.15.1 and 2.21, meshes of 8 and of 4 x 2); with `mesh=` it is exact. Where the file has one mesh that the metric can
see, it is added. Not reported for metrics that are updated with numbers (`loss.numpy()`).
""",
    ),
    Rule(
        "TFM779",
        "the sparse gradient of an embedding on a mesh",
        Severity.REVIEW,
        """
The gradient of a `tf.keras.layers.Embedding` is that of the rows which a batch uses (`tf.IndexedSlices`). On a DTensor
mesh an optimizer that applies it inside of a `tf.function` raises (`ResourceScatterAdd` has no layouts), and outside of
one trains to other weights without an error: a table of 12 x 4 that is whole on 4 devices, gradient descent, was 0.4 %
off in the third loss (2.21). Made dense it gave the losses of one device (1e-7), also with a table divided by columns:

```python
gradients = [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, variables)]
```

A table that is divided by rows cannot be looked up in at all (`ResourceGather` raises): look it up as the product
`tf.matmul(tf.one_hot(ids, rows), table)`, which is exact with every layout. Momentum and RMSProp treat rows that a
batch does not use otherwise with dense gradients.
""",
    ),
    Rule(
        "TFM776",
        "keras.distribution has no effect on TensorFlow",
        Severity.MANUAL,
        """
On the TensorFlow backend of Keras 3, `DeviceMesh`, `LayoutMap`, `DataParallel`, `ModelParallel` and `set_distribution`
raise nothing and have no effect: the kernel of a layer that should be split over 2 of 8 devices lies whole on the first
one, and the losses are those of one device to the last bit (measured on 2.21 with Keras 3.15). It works on JAX. On
TensorFlow use `tf.distribute.MirroredStrategy` for data parallelism, `tf.keras.dtensor.experimental.LayoutMap` of
tf_keras (Keras 2) for sharded layers, or `tf.experimental.dtensor` itself.
""",
    ),
)

_CORE = "tf.experimental.dtensor"
_KERAS = "tf.keras.dtensor.experimental"
_MOVED = {
    f"{_CORE}.initialize_multi_client": "initialize_accelerator_system",
    f"{_CORE}.initialize_tpu_system": "initialize_accelerator_system",
    f"{_CORE}.shutdown_tpu_system": "shutdown_accelerator_system",
    f"{_CORE}.run_on": "default_mesh",
}
_GONE_METHODS = {
    "from_str": "use Layout.from_string with the text of to_string",
    "serialized_string": "use layout.as_proto().SerializeToString()",
    "mesh_proto": "use layout.mesh.as_proto()",
    "unravel": "use dtensor.relayout to a replicated layout, or place the shards by layout.offset_to_shard()",
}
_GONE_ARGUMENTS = {
    "num_global_devices": "DTensor counts the devices itself",
    "num_clients": "set DTENSOR_NUM_CLIENTS",
    "client_id": "set DTENSOR_CLIENT_ID",
}
_NO_ARGUMENTS = {
    "gradients_clip_option": "use clipnorm, clipvalue or global_clipnorm",
    "ema_option": "use use_ema and ema_momentum",
}
_ADAM = ("tf.keras.optimizers.Adam", "tf.keras.optimizers.experimental.Adam", f"{_KERAS}.optimizers.Adam")
# What puts batches on a mesh.
_PLACING = (
    f"{_CORE}.pack",
    f"{_CORE}.relayout",
    f"{_CORE}.copy_to_mesh",
    f"{_CORE}.DTensorDataset",
    f"{_CORE}.call_with_layout",
)
_OTHER_BACKEND = re.compile(r"KERAS_BACKEND\W+(?:\w+\W+)?(?:jax|torch)")


_BLOCKS = (cst.Module, cst.IndentedBlock)


def is_dtensor(file: ModernFile) -> bool:
    """Whether a file speaks of DTensor."""
    origins = [canonical(origin) for origin in file.parsed.imports.names.values()]
    names = [*origins, *(file.name(node) or "" for node in file.attributes)]
    return any(name.startswith((_CORE, "tf.keras.dtensor")) for name in names)


def check_dtensor(file: ModernFile) -> Iterable[Change]:
    """All about DTensor in a file."""
    if not says(file.parsed.text, "dtensor") or not is_dtensor(file):
        return
    yield from _names(file)
    yield from _keras(file)
    yield from _shapes(file)
    yield from _counters(file)
    yield from _widths(file)
    yield from _batches(file)
    yield from _gradients(file)
    yield from _embeddings(file)
    yield from _metrics(file)


def check_distribution(file: ModernFile) -> Iterable[Change]:
    """`keras.distribution`, which is named once for a file."""
    if not says(file.parsed.text, "distribution") or _OTHER_BACKEND.search(file.parsed.bare):
        return
    imports = file.parsed.imports
    for call in file.calls:
        name = imports.resolve(call.func) or ""
        if name.startswith(("keras.distribution.", "tf.keras.distribution.")):
            message = (
                f"`{file.parsed.code(call.func)}` has no effect on the TensorFlow backend, and nothing "
                "is sharded: use tf.distribute.MirroredStrategy, tf.experimental.dtensor, or Keras 3 "
                "on JAX"
            )
            yield Change("TFM776", call, message, severity=Severity.MANUAL)
            return


# -- names --


def _names(file: ModernFile) -> Iterable[Change]:
    for call in file.calls:
        name = file.name(call.func) or ""
        last = name.rpartition(".")[2]
        if name == f"{_KERAS}.layout_map_scope" and len(call.args) == 1:
            yield Change("TFM770", call, "`layout_map_scope` is now a method of LayoutMap", _scope)
        elif name in (f"{_CORE}.initialize_multi_client", f"{_CORE}.initialize_tpu_system"):
            message = f"`{last}` is `initialize_accelerator_system` now"
            kind = "TPU" if last == "initialize_tpu_system" else None
            yield Change("TFM770", call, message, partial(_initialize, kind))
        elif name == f"{_CORE}.run_on" and len(call.args) == 1:
            layout = (file.made_by(call.args[0].value) or "").startswith(f"{_CORE}.Layout")
            if layout:
                message = "`run_on` now takes a mesh, not a layout"
                yield Change("TFM770", call.args[0], message, _mesh_of)
        elif name == f"{_CORE}.create_distributed_mesh":
            for arg in call.args:
                if arg.keyword is not None and arg.keyword.value in _GONE_ARGUMENTS:
                    message = f"`{arg.keyword.value}` is gone: {_GONE_ARGUMENTS[arg.keyword.value]}"
                    yield Change("TFM771", arg, message, severity=Severity.MANUAL)
        elif isinstance(call.func, cst.Attribute) and call.func.attr.value in _GONE_METHODS:
            if name.startswith(f"{_CORE}.Layout") or _is_layout(file, call.func.value):
                message = f"`{call.func.attr.value}` is gone: {_GONE_METHODS[call.func.attr.value]}"
                yield Change("TFM771", call, message, severity=Severity.MANUAL)
    for node in file.attributes:
        name = file.name(node) or ""
        if name in _MOVED and not name.endswith(("initialize_multi_client", "initialize_tpu_system")):
            message = f"`{node.attr.value}` is `{_MOVED[name]}` now"
            yield Change("TFM770", node.attr, message, partial(_named, _MOVED[name]))
    for statement in file.imports_from:
        yield from _imported(file, statement)


def _imported(file: ModernFile, statement: cst.ImportFrom) -> Iterable[Change]:
    """Names that moved, imported by themselves."""
    if statement.relative or isinstance(statement.names, cst.ImportStar):
        return
    module = canonical(dotted(statement.module) or "")
    for alias in statement.names:
        name = f"{module}.{dotted(alias.name)}"
        if name in _MOVED:
            message = f"import `{_MOVED[name]}` instead of `{dotted(alias.name)}`, and call it by that name"
            yield Change("TFM771", alias, message, severity=Severity.MANUAL)
        elif name == f"{_KERAS}.layout_map_scope":
            if len(statement.names) == 1:
                message = "`layout_map_scope` is now a method of LayoutMap"
                yield Change("TFM770", file.parsed.parents[statement], message, _removed)
            else:
                yield Change("TFM770", statement, "`layout_map_scope` is now a method of LayoutMap", _without_scope)
        elif module.startswith("keras.dtensor"):
            message = "the package `keras` is Keras 3 since TensorFlow 2.16: import this from `tensorflow.keras`"
            yield Change("TFM771", alias, message, severity=Severity.MANUAL)


def _named(name: str, node: cst.CSTNode) -> cst.CSTNode:
    return is_edit_of(node, cst.Name).with_changes(value=name)


def _scope(node: cst.CSTNode) -> cst.CSTNode:
    call = is_edit_of(node, cst.Call)
    return call.with_changes(func=cst.Attribute(call.args[0].value, cst.Name("scope")), args=[])


def _initialize(kind: str | None, node: cst.CSTNode) -> cst.CSTNode:
    call = is_edit_of(node, cst.Call)
    name = cst.Name("initialize_accelerator_system")
    function = call.func.with_changes(attr=name) if isinstance(call.func, cst.Attribute) else name
    args = [
        arg if arg.keyword else arg.with_changes(keyword=cst.Name("enable_coordination_service"), equal=_EQUAL)
        for arg in call.args
    ]
    first = [cst.Arg(cst.SimpleString(f'"{kind}"'))] if kind is not None else []
    return call.with_changes(func=function, args=[*first, *args])


def _mesh_of(node: cst.CSTNode) -> cst.CSTNode:
    arg = is_edit_of(node, cst.Arg)
    return arg.with_changes(value=cst.Attribute(arg.value, cst.Name("mesh")))


def _removed(node: cst.CSTNode) -> cst.CSTNode:
    return cst.RemoveFromParent()  # type: ignore[return-value]


def _without_scope(node: cst.CSTNode) -> cst.CSTNode:
    statement = is_edit_of(node, cst.ImportFrom)
    assert not isinstance(statement.names, cst.ImportStar)
    kept = [alias for alias in statement.names if dotted(alias.name) != "layout_map_scope"]
    return statement.with_changes(names=[*kept[:-1], kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)])


_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


# -- Keras --


def _keras(file: ModernFile) -> Iterable[Change]:
    """Calls of Keras with layouts or a mesh, which only Keras 2 takes; arguments of its DTensor optimizers."""
    for call in file.calls:
        name = file.name(call.func) or ""
        if not name.startswith("tf.keras."):
            continue
        for arg in call.args:
            given = arg.keyword.value if arg.keyword is not None else ""
            if given == "mesh" or given.endswith("_layout"):
                yield Change("TFM712", arg, f"`{given}` is an argument of Keras 2 only", keras_2=True)
            if given in _NO_ARGUMENTS and ".optimizers." in name:
                message = f"`{given}` is gone: {_NO_ARGUMENTS[given]}"
                yield Change("TFM771", arg, message, severity=Severity.MANUAL)
        if name in _ADAM and len(call.args) > 4 and not any(arg.keyword or arg.star for arg in call.args[:5]):
            message = "the fifth argument is `amsgrad`, which moved in tf_keras 2.21: it is a keyword argument now"
            yield Change("TFM770", call.args[4], message, _amsgrad)


def _amsgrad(node: cst.CSTNode) -> cst.CSTNode:
    return is_edit_of(node, cst.Arg).with_changes(keyword=cst.Name("amsgrad"), equal=_EQUAL)


# -- layouts --


def _is_layout(file: ModernFile, node: cst.BaseExpression) -> bool:
    """Whether an expression is a layout: made as one, declared as one, or called one."""
    made = file.made_by(node)
    if made is not None:
        return made.startswith(f"{_CORE}.Layout") or made == f"{_CORE}.fetch_layout"
    value = file.value_of(node)
    if isinstance(value, cst.Call) and (file.parsed.imports.resolve(value.func) or "tf").partition(".")[0] != "tf":
        return False  # another library's
    name = dotted(node) or ""
    last = name.rpartition(".")[2]
    if last == "layout" or last.endswith("_layout"):
        return True
    annotations = (
        parameter.annotation
        for function in file.functions
        for parameter in function.params.params
        if parameter.name.value == name and parameter.annotation is not None
    )
    return any(file.name(annotation.annotation) == f"{_CORE}.Layout" for annotation in annotations)


def _shapes(file: ModernFile) -> Iterable[Change]:
    for node in file.attributes:
        if node.attr.value != "shape" or not _is_layout(file, node.value):
            continue
        around = file.parsed.parents[node]
        index = _index(around) if isinstance(around, cst.Subscript) and around.value is node else None
        if index is not None:
            axis = file.parsed.code(index)
            message = f"`shape` of a layout is now its mesh's: `num_shards({axis})` is the number of shards"
            yield Change("TFM772", around, message, _num_shards, severity=Severity.REVIEW)
        else:
            message = (
                "`shape` of a layout is now its mesh's; until TensorFlow 2.11 it was the number of "
                "shards per axis: use `num_shards(axis)`, or `mesh.shape()` if the mesh is meant"
            )
            yield Change("TFM772", node, message, severity=Severity.REVIEW)


def _index(node: cst.Subscript) -> cst.BaseExpression | None:
    if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        return None
    value = node.slice[0].slice.value
    return None if isinstance(value, cst.UnaryOperation) else value  # num_shards counts from the front only


def _num_shards(node: cst.CSTNode) -> cst.CSTNode:
    subscript = is_edit_of(node, cst.Subscript)
    shape, index = is_edit_of(subscript.value, cst.Attribute), _index(subscript)
    assert index is not None
    return cst.Call(
        shape.with_changes(attr=cst.Name("num_shards")), [cst.Arg(index)], lpar=subscript.lpar, rpar=subscript.rpar
    )


# -- counters --


def _counters(file: ModernFile) -> Iterable[Change]:
    """Python numbers that are counted up in a function that updates variables or is traced: attributes, entries of a
    dict, and names of the function or module around it.
    """
    if "function" not in file.parsed.bare:
        return
    told: set[cst.CSTNode] = set()
    for function in file.functions:
        if function.name.value == "__init__" or not (_updates(function) or _is_traced(file, function)):
            continue
        owner = _class_of(file, function)
        numbers = set() if owner is None else {f"self.{name}" for name in _numbers(owner)}
        counted = _Counted(file)
        walk(function.body, counted)
        if counted.shared:
            lines = [line for block in of_kinds(file.parsed.module, *_BLOCKS) for line in block.body]
            numbers |= counted.shared & {name for line in lines for name, _ in _given_number(line)}
        for node, name in counted.found:
            if node not in told and (name in numbers or name in counted.entries):
                told.add(node)
                message = (
                    f"`{name}` is a Python number, which a tf.function increments only when traced: make it "
                    f"a DVariable and write `{name}.assign_add(1.0)` (see TFM773)"
                )
                yield Change("TFM773", node, message, severity=Severity.REVIEW)


def _class_of(file: ModernFile, function: cst.FunctionDef) -> cst.ClassDef | None:
    block = file.parsed.parents.get(function)
    around = file.parsed.parents.get(block) if block is not None else None
    return around if isinstance(around, cst.ClassDef) else None


def _last_names(calls: Iterable[cst.Call]) -> set[str]:
    """What is called, each by the last part of its name."""
    return {(dotted(call.func) or "").rpartition(".")[2] for call in calls}


def _is_traced(file: ModernFile, function: cst.FunctionDef) -> bool:
    """Whether a function is a `tf.function`."""
    made = [d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator for d in function.decorators]
    return any(file.name(node) == "tf.function" for node in made)


def _decorates(file: ModernFile, call: cst.Call) -> bool:
    return isinstance(file.parsed.parents.get(call), cst.Decorator)


def _applied_outside(file: ModernFile) -> bool:
    """Whether a file applies its gradients, by `apply_gradients`, in no `tf.function`, and in none that one calls."""
    called: dict[cst.FunctionDef, set[str]] = {}
    for function in file.functions:
        called[function] = _last_names(calls_in(function.body))
    applying = {function for function, names in called.items() if "apply_gradients" in names}
    forbidden = {"apply_gradients", "minimize", *(function.name.value for function in applying)}
    if any(file.name(call.func) == "tf.function" for call in file.calls if not _decorates(file, call)):
        return False  # what it is given may be one that applies
    traced = [names for function, names in called.items() if _is_traced(file, function)]
    return "apply_gradients" in _last_names(file.calls) and not any(names & forbidden for names in traced)


def _updates(function: cst.FunctionDef) -> bool:
    """Whether a function assigns variables."""
    return bool(_methods(function.body) & {"assign", "assign_add", "assign_sub"})


def _methods(node: cst.CSTNode) -> set[str]:
    """The names of the methods that are called below a node."""
    return {call.func.attr.value for call in calls_in(node) if isinstance(call.func, cst.Attribute)}


def _numbers(owner: cst.ClassDef) -> set[str]:
    """The attributes that a class's constructor, or its body, gives a number, or a parameter whose default is one."""
    found: set[str] = set()
    for statement in owner.body.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value == "__init__":
            params = [*statement.params.params, *statement.params.kwonly_params]
            defaults = {one.name.value for one in params if one.default is not None and number(one.default) is not None}
            for line in statement.body.body:
                given = _given_number(line, defaults)
                found |= {name.removeprefix("self.") for name, _ in given if name.startswith("self.")}
        found |= {name for name, _ in _given_number(statement)}
    return found


def _given_number(line: cst.CSTNode, names: Collection[str] = ()) -> Iterable[tuple[str, cst.BaseExpression]]:
    """What a line gives a number, or one of some names, and the number."""
    for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
        if isinstance(small, cst.Assign):
            targets = [target.target for target in small.targets]
        elif isinstance(small, cst.AnnAssign) and small.value is not None:
            targets = [small.target]
        else:
            continue
        assert small.value is not None
        if number(small.value) is not None or (dotted(small.value) or "") in names:
            yield from ((dotted(target) or "", small.value) for target in targets)


class _Counted(cst.CSTVisitor):
    """`self.x += 1`, `self.x = self.x + 1`, and the same of what is `global`, `nonlocal` or in a dict of numbers.

    `shared` are the global and nonlocal names, `entries` those of dicts whose entry is known to be a number.
    """

    def __init__(self, file: ModernFile) -> None:
        super().__init__()
        self.file = file
        self.found: list[tuple[cst.CSTNode, str]] = []
        self.shared: set[str] = set()
        self.entries: set[str] = set()

    def visit_Global(self, node: cst.Global) -> None:
        self.shared |= {item.name.value for item in node.names}

    def visit_Nonlocal(self, node: cst.Nonlocal) -> None:
        self.shared |= {item.name.value for item in node.names}

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        name = self._name(node.target)
        if isinstance(node.operator, cst.AddAssign) and name and number(node.value) is not None:
            self.found.append((node, name))

    def visit_Assign(self, node: cst.Assign) -> None:
        name = self._name(node.targets[0].target)
        value = node.value
        if name and isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
            if name in (self._name(value.left), self._name(value.right)):
                self.found.append((node, name))

    def _name(self, node: cst.BaseExpression) -> str:
        if not isinstance(node, cst.Subscript):
            return dotted(node) or ""
        name = self.file.parsed.code(node)
        made = self.file.value_of(node.value)
        index = node.slice[0].slice
        if isinstance(made, cst.Dict) and isinstance(index, cst.Index):
            for one in made.elements:
                if isinstance(one, cst.DictElement) and one.key.deep_equals(index.value):
                    if number(one.value) is not None:
                        self.entries.add(name)
        return name


# -- gradients --


def _gradients(file: ModernFile) -> Iterable[Change]:
    """Gradients of a tape that are given to an optimizer as they come."""
    if _laid_out_by_own_optimizers(file):
        return
    seen: set[cst.Call] = set()
    apart = _applied_outside(file)
    for function in reversed(file.functions):  # inner ones before those around them
        if apart and _is_traced(file, function):
            seen.update(calls_in(function.body))
            continue
        calls = [call for call in calls_in(function.body) if call not in seen]
        seen.update(calls)
        if _methods(function.body) & {"relayout", "assign_sub"}:
            continue
        for call in calls:
            if isinstance(call.func, cst.Attribute) and call.func.attr.value == "gradient" and len(call.args) == 2:
                message = (
                    "this optimizer reads its moments after assigning them, and gets the old values if a "
                    "gradient's layout differs from its variable's: relayout every gradient to its "
                    "variable's layout first"
                )
                yield Change("TFM777", call, message, severity=Severity.REVIEW)


def _laid_out_by_own_optimizers(file: ModernFile) -> bool:
    """Whether a file's optimizers are all of its own, and lay gradients out themselves before they apply them."""
    own = [one for one in file.functions if one.name.value == "apply_gradients"]
    for one in own:
        if "relayout" not in _methods(one.body):
            return False
    return bool(own) and not any(".optimizers." in (file.name(call.func) or "") for call in file.calls)


def _embeddings(file: ModernFile) -> Iterable[Change]:
    """Embeddings whose gradients are taken, and nowhere made dense."""
    called = _last_names(file.calls)
    if "gradient" not in called or "convert_to_tensor" in called:
        return
    for call in file.calls:
        if file.name(call.func) == "tf.keras.layers.Embedding":
            message = (
                "the sparse gradient of an embedding raises on a mesh, or silently trains to other "
                "weights: apply `tf.convert_to_tensor(gradient)`"
            )
            yield Change("TFM779", call, message, severity=Severity.REVIEW)


# -- metrics --


def _metrics(file: ModernFile) -> Iterable[Change]:
    """Keras metrics without a mesh, in a file that packs its batches."""
    if not any((file.name(call.func) or "") in _PLACING for call in file.calls):
        return
    if _updated_with_numbers(file):
        return
    mesh = _mesh(file)
    for call in file.calls:
        name = file.name(call.func) or ""
        if not name.startswith("tf.keras.metrics.") or not name.rpartition(".")[2][:1].isupper():
            continue
        if keyword(call, "mesh") is not None or any(arg.star for arg in call.args):
            continue
        if mesh is not None and _sees(file, call, mesh[1]):
            message = f"a metric on DTensors needs their mesh: `mesh={mesh[0]}` is added"
            yield Change("TFM778", call, message, partial(_with_mesh, mesh[0]), Severity.REVIEW, keras_2=True)
        else:
            message = "a metric on DTensors reports wrong values without their mesh: pass `mesh=`"
            yield Change("TFM778", call, message, severity=Severity.REVIEW)


def _updated_with_numbers(file: ModernFile) -> bool:
    """Whether a metric of the file is given numbers of the host."""
    for call in file.calls:
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "update_state":
            for inner in (one for arg in call.args for one in calls_in(arg)):
                if dotted(inner.func) == "float" or (dotted(inner.func) or "").endswith(".numpy"):
                    return True
    return False


def _mesh(file: ModernFile) -> tuple[str, cst.CSTNode] | None:
    """The name of the file's mesh, and where it is given, if there is one mesh in the file."""
    makers = (f"{_CORE}.create_mesh", f"{_CORE}.create_distributed_mesh")
    made = [call for call in file.calls if (file.name(call.func) or "") in makers]
    around = file.parsed.parents[made[0]] if len(made) == 1 else None
    if not isinstance(around, cst.Assign) or len(around.targets) != 1:
        return None
    target = around.targets[0].target
    return (target.value, around) if isinstance(target, cst.Name) else None


def _sees(file: ModernFile, call: cst.Call, given: cst.CSTNode) -> bool:
    """Whether a name that is given somewhere has its value at a call: above it in its function or in the module."""

    def function_of(node: cst.CSTNode) -> cst.CSTNode | None:
        parent = file.parsed.parents.get(node)
        while parent is not None and not isinstance(parent, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            parent = file.parsed.parents.get(parent)
        return parent

    own, home = function_of(call), function_of(given)
    return own is home and file.parsed.position(given) < file.parsed.position(call)


def _with_mesh(mesh: str, node: cst.CSTNode) -> cst.CSTNode:
    call = is_edit_of(node, cst.Call)
    return call.with_changes(args=[*call.args, cst.Arg(cst.Name(mesh), cst.Name("mesh"), equal=_EQUAL)])


# -- widths --


def _widths(file: ModernFile) -> Iterable[Change]:
    """Whole numbers that are given to one name twice with nothing but such lines in between, or twice in a dict."""
    for block in (one.body for one in of_kinds(file.parsed.module, *_BLOCKS)):
        known: dict[str, cst.BaseExpression] = {}
        for statement in block:
            given = _whole_numbers(statement)
            if not given:
                known = {}
            for name, value, node in given:
                yield from _twice(file, name, known.get(name), value, node)
                known[name] = value
    for written in of_kinds(file.parsed.module, cst.Dict):
        sizes: dict[str, cst.BaseExpression] = {}
        for element in written.elements:
            if isinstance(element, cst.DictElement) and isinstance(element.value, cst.Integer):
                name = file.parsed.code(element.key)
                yield from _twice(file, name, sizes.get(name), element.value, element)
                sizes[name] = element.value


def _twice(
    file: ModernFile, name: str, before: cst.BaseExpression | None, value: cst.BaseExpression, node: cst.CSTNode
) -> Iterable[Change]:
    if before is not None and not before.deep_equals(value):
        old, new = file.parsed.code(before), file.parsed.code(value)
        message = f"`{name}` is {new} from here on, and its value {old} is never used: check the name"
        yield Change("TFM774", node, message, severity=Severity.REVIEW)


def _whole_numbers(statement: cst.CSTNode) -> list[tuple[str, cst.BaseExpression, cst.CSTNode]]:
    """What a line gives whole numbers, if it does nothing else."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return []
    small = statement.body[0]
    if isinstance(small, cst.AnnAssign) and isinstance(small.value, cst.Integer):
        name = dotted(small.target)
        return [] if name is None else [(name, small.value, small)]
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return []
    target, value = small.targets[0].target, small.value
    names: list[cst.BaseExpression | cst.BaseAssignTargetExpression] = [target]
    values = [value]
    if isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, (cst.Tuple, cst.List)):
        names = [one.value for one in target.elements]
        values = [one.value for one in value.elements]
    pairs = [(dotted(name), one) for name, one in zip(names, values)]
    if len(names) != len(values) or any(name is None or not isinstance(one, cst.Integer) for name, one in pairs):
        return []
    return [(name, one, small) for name, one in pairs if name is not None]


# -- batches --


def _batches(file: ModernFile) -> Iterable[Change]:
    shards = _shards(file)
    if not shards or _places_remainders(file):
        return
    many = max(size or 0 for size in shards)
    for call in file.calls:
        function = call.func
        if (
            not isinstance(function, cst.Attribute)
            or function.attr.value not in ("batch", "padded_batch")
            or not call.args
        ):
            continue
        if not _of_dataset(file, function.value):
            continue
        size = file.parsed.integer(call.args[0].value)
        place = 1 if function.attr.value == "batch" else 3
        positional = next((arg for arg in call.args[place : place + 1] if arg.keyword is None), None)
        dropped = keyword(call, "drop_remainder") or positional
        drops = dropped is not None and dotted(dropped.value) == "True"
        uneven = next((n for n in shards if size and n and size % n), None)
        if uneven is not None:
            message = f"a batch of {size} cannot be split into {uneven} equal parts, the size of the mesh"
            yield Change("TFM775", call, message, severity=Severity.MANUAL)
        elif not drops:
            yield from _last_batch(file, call, size, many)


def _places_remainders(file: ModernFile) -> bool:
    """Whether a function that places tensors on the mesh asks for a remainder first, and copies such ones whole."""
    for function in file.functions:
        called = _last_names(calls_in(function.body))
        if {"copy_to_mesh", "pack"} <= called:
            tests = [one.test for one in of_kinds(function.body, cst.If)]
            if any(isinstance(one, cst.BinaryOperation) and isinstance(one.operator, cst.Modulo) for one in tests):
                return True
    return False


def _last_batch(file: ModernFile, call: cst.Call, size: int | None, many: int) -> Iterable[Change]:
    """What is known of the last batch, when the remainder is not dropped."""
    assert isinstance(call.func, cst.Attribute)
    rows = _rows(file, call.func.value)
    if rows is None or size is None or not many:
        message = (
            "the last batch may not be divisible by the mesh, which is an error: pass "
            "drop_remainder=True, or make sure that it is"
        )
        yield Change("TFM775", call, message, severity=Severity.REVIEW)
    elif rows % size % many:
        message = f"the last batch of {rows % size} cannot be split into {many} equal parts, and is now dropped"
        edit = _drop if keyword(call, "drop_remainder") is None and len(call.args) == 1 else None
        severity = Severity.MANUAL if edit is None else Severity.REVIEW
        yield Change("TFM775", call, message, edit, severity)


def _drop(node: cst.CSTNode) -> cst.CSTNode:
    call = is_edit_of(node, cst.Call)
    drop = cst.Arg(cst.Name("True"), cst.Name("drop_remainder"), equal=_EQUAL)
    return call.with_changes(args=[*call.args, drop])


def _of_dataset(file: ModernFile, node: cst.BaseExpression) -> bool:
    """Whether a chain of calls begins at a data set of tf.data, or at something that is called one."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if (file.name(node.func) or "").startswith("tf.data."):
            return True
        node = node.func.value
    made = file.made_by(node) or ""
    last = (dotted(node) or "").rpartition(".")[2]
    return made.startswith("tf.data.") or last == "ds" or last.endswith(("dataset", "data", "_ds"))


def _rows(file: ModernFile, node: cst.BaseExpression) -> int | None:
    """How many examples a chain of calls has, where `take` says so and nothing changes it after."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        method = node.func.attr.value
        if method == "take" and len(node.args) == 1:
            return file.parsed.integer(node.args[0].value)
        if method not in ("map", "shuffle", "cache", "prefetch"):
            return None
        node = node.func.value
    return None


def _shards(file: ModernFile) -> set[int | None]:
    """Into how many parts the meshes of a file split a batch; None where that is not written in it."""
    along = {
        _text(arg.value)
        for call in file.calls
        if (file.name(call.func) or "") == f"{_CORE}.Layout.batch_sharded"
        for arg in [keyword(call, "batch_dim"), *call.args[1:2]]
        if arg is not None
    }
    found: set[int | None] = set()
    for call in file.calls:
        if (file.name(call.func) or "") not in (f"{_CORE}.create_mesh", f"{_CORE}.create_distributed_mesh"):
            continue
        dims = keyword(call, "mesh_dims") or next(iter(call.args), None)
        written = None if dims is None else file.value_of(dims.value) or dims.value
        pairs = _pairs(written) if written is not None else {}
        names = {name for name in pairs if name in along} or {name for name in pairs if name == "batch"}
        found |= {_size(file, pairs[name]) for name in names}
    return found


def _pairs(node: cst.BaseExpression) -> dict[str, cst.BaseExpression]:
    """The dimensions of a mesh that are written out: names, and sizes."""
    if isinstance(node, cst.Dict):
        pairs = [(e.key, e.value) for e in node.elements if isinstance(e, cst.DictElement)]
    elif isinstance(node, (cst.List, cst.Tuple)):
        rows = [e.value for e in node.elements]
        pairs = [
            (r.elements[0].value, r.elements[1].value)
            for r in rows
            if isinstance(r, cst.Tuple) and len(r.elements) == 2
        ]
    else:
        pairs = []
    return {name: value for key, value in pairs if (name := _text(key)) is not None}


def _text(node: cst.BaseExpression) -> str | None:
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else None
    return value if isinstance(value, str) else None


def _size(file: ModernFile, node: cst.BaseExpression) -> int | None:
    """A whole number, or the length of a list that is made over a range."""
    if isinstance(node, cst.Call) and dotted(node.func) == "len" and len(node.args) == 1:
        made = file.value_of(node.args[0].value)
        if isinstance(made, cst.ListComp) and isinstance(made.for_in.iter, cst.Call):
            over = made.for_in.iter
            if dotted(over.func) == "range" and len(over.args) == 1:
                return file.parsed.integer(over.args[0].value)
        return None
    return file.parsed.integer(node)


CHECKS = (check_dtensor, check_distribution)
