"""Keeps a copy of each SavedModel that a program writes, as it is then: what a run writes elsewhere is soon gone."""

import importlib
import os
import shutil

import parts

#: No more than so many bytes of one SavedModel are kept.
LARGEST = 1 << 29


def install(folder, effects):
    """Watches both ways of TensorFlow to write a SavedModel; `folder` is the task's, ``effects`` its list."""
    kept = []

    def keep(place):
        if isinstance(place, bytes):
            place = place.decode()
        place = os.fspath(place)
        sizes = [os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(place) for name in names]
        kept.append(place)
        name = "%04d" % len(kept)
        small = bool(sizes) and sum(sizes) <= LARGEST
        if small:
            shutil.copytree(place, folder.file("exports", name))
        folder.append_line("exports.jsonl", {"name": name, "path": place, "kept": small})
        effects.note("export", place)

    def build(original, builder, *args, **kwargs):
        result = original(builder, *args, **kwargs)
        keep(builder._export_dir)
        return result

    def save(original, obj, export_dir, *args, **kwargs):
        result = original(obj, export_dir, *args, **kwargs)
        keep(export_dir)
        return result

    builders = importlib.import_module("tensorflow.python.saved_model.builder_impl")
    parts.wrap(builders._SavedModelBuilder, "save", build)
    saving = importlib.import_module("tensorflow.python.saved_model.save")
    # TensorFlow 1.15 has one function for what is two later on.
    parts.wrap(saving, "save_and_return_nodes" if hasattr(saving, "save_and_return_nodes") else "save", save)
