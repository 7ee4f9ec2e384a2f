"""The driver of a training program: what replaces the Estimator, its specs and the calls on it.

`driver.emit_driver` makes it from a `draft`: the `helpers` beside the program and the `data` that tell the shapes come
first, then the plan of the training (`planning`, with its `steps` and its `strategy`), the lines that `setting_up`
writes, what the `uses` become, and what is `told` of the differences.
"""
