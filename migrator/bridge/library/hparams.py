"""Hyperparameters, as tf.contrib.training had them."""

import json
import numbers
import re


class HParams:
    """Hyperparameters: attributes, whose values keep the type that they were made with."""

    def __init__(self, hparam_def=None, model_structure=None, **values):
        if hparam_def is not None:
            raise ValueError("HParams cannot be read from a protocol buffer any more; give the values by name")
        self._hparam_types = {}  # of each: the type of its value (or of what its list holds), and whether it is a list
        self._model_structure = model_structure
        for name, value in values.items():
            self.add_hparam(name, value)

    def add_hparam(self, name, value):
        """Adds a hyperparameter; its type is that of the value."""
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        is_list = isinstance(value, (list, tuple))
        if is_list and not value:
            raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
        self._hparam_types[name] = type(value[0] if is_list else value), is_list
        setattr(self, name, value)

    def set_hparam(self, name, value):
        """Sets an existing hyperparameter (KeyError if there is none) to a value of its type (ValueError if not)."""
        setattr(self, name, self._checked(name, value))

    def del_hparam(self, name):
        """Removes a hyperparameter, if there is one of that name."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values):
        """Sets hyperparameters from a text like "rate=0.1,units=[64,32],name=x". Returns this object."""
        pair = re.compile(r"([a-zA-Z][\w.]*)\s*(?:\[\s*(\d+)\s*\])?\s*=\s*(?:([^,\[]*)|\[([^\]]*)\])(?:$|,\s*)")
        found, place = {}, 0
        while place < len(values):
            match = pair.match(values, place)
            if not match or match[1] not in self._hparam_types or match[1] in found or match[2]:
                raise ValueError(f"Could not parse hparam values: {values[place:]}")
            place = match.end()
            name, _, one, several = match.groups()
            kind = self._hparam_types[name][0]
            read = self._read_bool if kind is bool else kind
            found[name] = read(one) if several is None else [read(word) for word in re.split("[ ,]", several) if word]
        return self.override_from_dict(found)

    @staticmethod
    def _read_bool(word):
        return word in ("true", "True") or (word not in ("false", "False") and bool(int(word)))

    def override_from_dict(self, values_dict):
        """Sets hyperparameters from a dictionary. Returns this object."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def set_from_map(self, values_map):
        """The old name of `override_from_dict`."""
        return self.override_from_dict(values_map)

    def parse_json(self, values_json):
        """Sets hyperparameters from a JSON object. Returns this object."""
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent=None, separators=None, sort_keys=False):
        """The hyperparameters as a JSON object."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def values(self):
        """The hyperparameters as a dictionary."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key, default=None):
        """The value of a hyperparameter, or the default, which must be of its type."""
        if key not in self._hparam_types:
            return default
        if default is not None:
            self._checked(key, default)
        return getattr(self, key)

    def set_model_structure(self, model_structure):
        """Keeps something for the program."""
        self._model_structure = model_structure

    def get_model_structure(self):
        """What the program gave to be kept."""
        return self._model_structure

    def __contains__(self, key):
        return key in self._hparam_types

    def __str__(self):
        return ",".join(f"{name}={value}" for name, value in self.values().items())

    def __repr__(self):
        return f"{type(self).__name__}({sorted(self.values().items())})"

    def _checked(self, name, value):
        """`value` in the type of the hyperparameter."""
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list) != is_list:
            raise ValueError(f"Must {'' if is_list else 'not '}pass a list for the hyperparameter: {name}")
        return [self._cast(name, kind, one) for one in value] if is_list else self._cast(name, kind, value)

    @staticmethod
    def _cast(name, kind, value):
        if kind is type(None) or type(value) is kind:
            return value
        alike = ((str, bytes), bool, numbers.Integral, numbers.Number)
        strange = any(issubclass(kind, types) and not isinstance(value, types) for types in alike)
        if strange or isinstance(value, bool) != issubclass(kind, bool):
            raise ValueError(f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}")
        return kind(value)
