"""Modules of TensorFlow Hub in the format of TensorFlow 1, applied in the graphs of TensorFlow 1 code."""

import collections
import os

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from google.protobuf import any_pb2
from tensorflow.core.framework import variable_pb2
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.feature_column import feature_column as columns_v1

_VARIABLE_OPS = ("Variable", "VariableV2", "VarHandleOp")
_UPDATES = {  # of variables by reference, and what stands for them
    "Assign": "AssignVariableOp",
    "AssignAdd": "AssignAddVariableOp",
    "AssignSub": "AssignSubVariableOp",
}


class HubModuleSpec:
    """What a module holds: a folder, or an address that the package tensorflow_hub downloads."""

    def __init__(self, handle, tags=None):
        if not tf.io.gfile.exists(os.path.join(handle, "saved_model.pb")):
            import tensorflow_hub

            handle = tensorflow_hub.resolve(handle)
        self.folder = handle
        saved = saved_model_pb2.SavedModel()
        with tf.io.gfile.GFile(os.path.join(handle, "saved_model.pb"), "rb") as file:
            saved.ParseFromString(file.read())
        self._graphs = {frozenset(meta.meta_info_def.tags): meta for meta in saved.meta_graphs}

    def get_tags(self):
        """The sets of tags, one for each graph."""
        return [set(tags) for tags in self._graphs]

    def graph_of(self, tags=None):
        """The graph with just these tags."""
        if frozenset(tags or ()) not in self._graphs:
            raise ValueError(f"the module has no graph with the tags {tags}; it has {self.get_tags()}")
        return self._graphs[frozenset(tags or ())]

    def _signature(self, signature, tags):
        found = self.graph_of(tags).signature_def
        if (signature or "default") not in found:
            raise ValueError(f"the module has no signature {signature}; it has {sorted(found)}")
        return found[signature or "default"]

    def get_signature_names(self, tags=None):
        """The names of what it computes."""
        return list(self.graph_of(tags).signature_def)

    def get_input_info_dict(self, signature=None, tags=None):
        """The specs of the inputs, by name."""
        return {name: _spec(info) for name, info in self._signature(signature, tags).inputs.items()}

    def get_output_info_dict(self, signature=None, tags=None):
        """The specs of the outputs, by name."""
        return {name: _spec(info) for name, info in self._signature(signature, tags).outputs.items()}

    def get_attached_message(self, key, message_type, tags=None, required=False):
        """A message that the module was given when it was made; None where it has none."""
        for one in self.graph_of(tags).collection_def["hub_module_attachments"].bytes_list.value:
            attached = any_pb2.Any.FromString(one)  # its fields are those of a key and a value
            if attached.type_url == key:
                return message_type.FromString(attached.value)
        if required:
            raise KeyError(f"No attached message with key {key}")
        return None


class _HubInfo(collections.namedtuple("_HubInfo", ["dtype", "shape", "is_sparse"])):
    """The type and the shape of an input or an output."""

    def get_shape(self):
        return self.shape


def _spec(info):
    return _HubInfo(tf.as_dtype(info.dtype), tf.TensorShape(info.tensor_shape), info.HasField("coo_sparse"))


class HubModule:
    """A module of TensorFlow Hub: a function with variables, called in the graph of a model_fn or an input_fn.

    Args:
        spec: the folder or the address of the module, or a HubModuleSpec.
        trainable: whether its variables are trained with the model.
        name: the scope of its variables.
        tags: which of its graphs it is, as `{"train"}`.
    """

    def __init__(self, spec, trainable=False, name="module", tags=None):
        self._spec = spec if isinstance(spec, HubModuleSpec) else HubModuleSpec(spec)
        self._tags, self._trainable = tags, trainable
        self._meta = self._spec.graph_of(tags)
        with tf1.variable_scope(None, default_name=name) as scope:
            scope.set_partitioner(None)
            self._name = scope.name
            self.variable_map = self._variables()
        if trainable:
            names = self._meta.collection_def[tf1.GraphKeys.REGULARIZATION_LOSSES].node_list.value
            for loss in self._run(list(names), {}, f"{self._name}_state"):
                tf1.add_to_collection(tf1.GraphKeys.REGULARIZATION_LOSSES, loss)

    def _variables(self):
        collection = self._meta.collection_def
        protos = [variable_pb2.VariableDef.FromString(one) for one in collection["variables"].bytes_list.value]
        learned = {
            variable_pb2.VariableDef.FromString(one).variable_name
            for one in collection["trainable_variables"].bytes_list.value
        }
        nodes = {node.name: node for node in self._meta.graph_def.node}
        self._made = {}  # by node
        found = collections.defaultdict(list)
        reader = protos and tf.train.load_checkpoint(os.path.join(self._spec.folder, "variables", "variables"))
        for proto in protos:
            node = proto.variable_name.partition(":")[0]
            part = proto.save_slice_info_def
            value = reader.get_tensor(part.full_name or node)
            if part.full_name:
                ends = np.add(part.var_offset, part.var_shape)
                value = value[tuple(slice(*ends_of) for ends_of in zip(part.var_offset, ends, strict=True))]
            self._made[node] = tf1.get_variable(
                node,
                dtype=tf.as_dtype(nodes[node].attr["dtype"].type),
                initializer=tf1.constant_initializer(value),
                shape=value.shape,
                trainable=self._trainable and proto.variable_name in learned,
            )
            found[part.full_name or node].append(self._made[node])
        return {name: made[0] if len(made) == 1 else made for name, made in found.items()}

    @property
    def variables(self):
        """All its variables, by name."""
        return [self.variable_map[name] for name in sorted(self.variable_map)]

    def get_signature_names(self):
        """The names of what it computes."""
        return self._spec.get_signature_names(self._tags)

    def get_input_info_dict(self, signature=None):
        """The specs of the inputs, by name."""
        return self._spec.get_input_info_dict(signature, self._tags)

    def get_output_info_dict(self, signature=None):
        """The specs of the outputs, by name."""
        return self._spec.get_output_info_dict(signature, self._tags)

    def get_attached_message(self, key, message_type, required=False):
        """A message that the module was given when it was made."""
        return self._spec.get_attached_message(key, message_type, self._tags, required)

    def __call__(self, inputs=None, _sentinel=None, signature=None, as_dict=None):
        """The default output of a signature, or all of them as a dictionary."""
        known = self._spec._signature(signature, self._tags)
        given = {} if inputs is None else inputs
        if not isinstance(given, dict):
            if len(known.inputs) != 1:
                raise TypeError(f"the inputs {sorted(known.inputs)} must be given as a dictionary")
            given = {next(iter(known.inputs)): given}
        if given.keys() != known.inputs.keys():
            raise TypeError(f"the inputs are {sorted(known.inputs)}, not {sorted(given)}")
        fed, asked = {}, {}
        for name, info in known.inputs.items():
            if info.HasField("coo_sparse"):
                sparse = info.coo_sparse
                fed[sparse.values_tensor_name] = given[name].values
                fed[sparse.indices_tensor_name] = given[name].indices
                fed[sparse.dense_shape_tensor_name] = given[name].dense_shape
            else:
                fed[info.name] = tf.convert_to_tensor(given[name], tf.as_dtype(info.dtype))
        for name, info in known.outputs.items():
            sparse = info.coo_sparse
            asked[name] = (
                [sparse.indices_tensor_name, sparse.values_tensor_name, sparse.dense_shape_tensor_name]
                if info.HasField("coo_sparse")
                else [info.name]
            )
        collection = self._meta.collection_def
        updates = list(collection[tf1.GraphKeys.UPDATE_OPS].node_list.value) if self._trainable else []
        tables = list(collection[tf1.GraphKeys.TABLE_INITIALIZERS].node_list.value)
        wanted = [*(one for names in asked.values() for one in names), *updates, *tables]
        found = dict(zip(wanted, self._run(wanted, fed, f"{self._name}_apply_{signature or 'default'}"), strict=True))
        for key, names in ((tf1.GraphKeys.UPDATE_OPS, updates), (tf1.GraphKeys.TABLE_INITIALIZERS, tables)):
            for one in names:
                tf1.add_to_collection(key, found[one])
        outputs = {
            name: found[names[0]] if len(names) == 1 else tf.SparseTensor(*(found[one] for one in names))
            for name, names in asked.items()
        }
        if as_dict:
            return outputs
        if len(outputs) > 1 and "default" not in outputs:
            raise TypeError(f"the outputs are {sorted(outputs)}: ask for as_dict=True")
        return outputs["default"] if "default" in outputs else next(iter(outputs.values()))

    def _run(self, wanted, fed, name):
        """Puts what computes some tensors and operations into the graph, with the module's variables; returns them."""
        if not wanted:
            return []
        graph = tf1.GraphDef()
        graph.CopyFrom(self._meta.graph_def)
        fed = dict(fed)
        for asset in self._meta.asset_file_def:
            path = os.path.join(self._spec.folder, "assets", asset.filename)
            fed[asset.tensor_info.name] = tf.constant(path)
        cut = {one.partition(":")[0] for one in fed} | self._made.keys()
        scope = tf1.get_default_graph().unique_name(name, mark_as_used=False)
        for node in graph.node:
            node.attr.pop("_class", None)
            if node.op in _UPDATES and node.input[0] in self._made:
                node.op = _UPDATES[node.op]
                kind = node.attr["T"].type
                node.attr.clear()
                node.attr["dtype"].type = kind
                node.input[0] = _handle_of(node.input[0])
            elif node.name in cut:
                kind = tf.as_dtype(tf.resource if node.op == "VarHandleOp" else node.attr["dtype"].type)
                _become_placeholder(node, kind)
            elif "shared_name" in node.attr and node.attr["shared_name"].s:
                node.attr["shared_name"].s = f"{scope}/".encode() + node.attr["shared_name"].s
        by_name = {node.name: node for node in self._meta.graph_def.node}
        for node, variable in self._made.items():
            by_handle = by_name[node].op == "VarHandleOp"
            handle = tf1.get_default_graph().capture(variable.handle)
            fed[f"{node}:0"] = handle if by_handle else tf.convert_to_tensor(variable)
            if not by_handle:
                _become_placeholder(graph.node.add(name=_handle_of(node)), tf.resource)
                fed[f"{_handle_of(node)}:0"] = handle
        roots = {one.removeprefix("^").partition(":")[0] for one in wanted}
        kept = tf1.graph_util.extract_sub_graph(graph, sorted(roots))
        known = {node.name for node in kept.node}
        used = {one: tensor for one, tensor in fed.items() if one.partition(":")[0] in known}
        return tf1.import_graph_def(kept, used, list(wanted), name=name.rpartition("/")[2])


def _handle_of(node):
    return f"{node}/handle_of_variable"


def _become_placeholder(node, kind):
    node.op = "Placeholder"
    del node.input[:]
    node.attr.clear()
    node.attr["dtype"].type = kind.as_datatype_enum


class _HubColumn(
    columns_v1._DenseColumn, collections.namedtuple("_HubColumn", ["key", "module_spec", "trainable", "is_text"])
):
    """A feature as a module represents it."""

    @property
    def name(self):
        return self.key

    @property
    def _parse_example_spec(self):
        if self.is_text:
            return {self.key: tf1.FixedLenFeature([1], tf.string)}
        return {self.key: tf1.FixedLenFeature(self.module_spec.get_input_info_dict()["images"].shape[1:], tf.float32)}

    @property
    def _variable_shape(self):
        return self.module_spec.get_output_info_dict()["default"].shape[1:]

    def _transform_feature(self, inputs):
        values = inputs.get(self.key)
        return tf.reshape(values, [-1]) if self.is_text else values

    def _get_dense_tensor(self, inputs, weight_collections=None, trainable=None):
        module = HubModule(self.module_spec, trainable=self.trainable and trainable is not False)
        values = inputs.get(self)
        return module(values if self.is_text else {"images": values})


def hub_text_embedding_column(key, module_spec, trainable=False):
    """A feature column: what a module makes of a text."""
    return _hub_column(key, module_spec, trainable, True)


def hub_image_embedding_column(key, module_spec, trainable=False):
    """A feature column: what a module makes of an image."""
    return _hub_column(key, module_spec, trainable, False)


def _hub_column(key, module_spec, trainable, is_text):
    spec = module_spec if isinstance(module_spec, HubModuleSpec) else HubModuleSpec(module_spec)
    return _HubColumn(key, spec, trainable, is_text)
