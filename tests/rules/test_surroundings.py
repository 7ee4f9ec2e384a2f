"""What stands around a model_fn: settings of the RunConfig and hooks, left out, carried over or refused."""

from __future__ import annotations

import ast
import re

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run


def manual(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.MANUAL]


def migrated(text: str, strategy: str = "auto") -> str:
    new, findings = run(text, strategy)
    assert not manual(findings), findings
    ast.parse(new)
    return new


def review(text: str) -> list[str]:
    return sorted(f.code for f in run(text)[1] if f.severity is Severity.REVIEW)


def configured(
    lines: str, argument: str = ", config=config", driver: str = "estimator.train(input_fn, steps=3)"
) -> str:
    text = program(driver=driver).replace("estimator = ", f"{lines}\nestimator = ", 1)
    return text.replace('params={"rate": 0.1})', f'params={{"rate": 0.1}}{argument})')


SESSION = """\
gpu_options = tf.GPUOptions(allow_growth=True)
session_config = tf.ConfigProto(allow_soft_placement=True, gpu_options=gpu_options)
session_config.intra_op_parallelism_threads = 2
config = tf.estimator.RunConfig(model_dir="m", session_config=session_config)"""


def test_session_settings_go_with_the_lines_that_made_them() -> None:
    text = configured(SESSION)
    new = migrated(text)
    for word in ("session_config", "gpu_options", "ConfigProto", "RunConfig"):
        assert word not in new
    assert review(text) == ["TFM170", "TFM850"]


def test_a_name_that_is_still_read_stays() -> None:
    text = configured("seed = 3\n" + SESSION.replace('"m"', '"m", tf_random_seed=seed') + "\nprint(session_config)")
    new = migrated(text)
    assert "gpu_options = tf.compat.v1.GPUOptions(allow_growth=True)\nsession_config = tf.compat.v1.ConfigProto(" in new
    assert "seed = 3" in migrated(text.replace("\nprint(session_config)", ""))


CONFIGS = {
    "replace in place": ("", ', config=tf.estimator.RunConfig().replace(tf_random_seed=7, model_dir="m")'),
    "replace behind a name": (
        "config = tf.estimator.RunConfig(tf_random_seed=1)\n"
        'config = config.replace(model_dir="m")\nconfig = config.replace(tf_random_seed=7)',
        ", config=config",
    ),
    "contrib": ('config = tf.contrib.learn.RunConfig(tf_random_seed=7, model_dir="m", num_cores=2)', ", config=config"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_run_configs(name: str) -> None:
    new = migrated(configured(*CONFIGS[name]))
    assert "tf.random.set_seed(7)" in new and '"m"' in new
    assert "replace(" not in _program(new) and "config" not in _program(new)


def _program(text: str) -> str:
    """A migrated program without the function that loads its checkpoints."""
    return re.sub(r"def load_checkpoint\(.*?\n\n\n", "", text, flags=re.DOTALL)


CONDITION = "import os\n"
CHOSEN = {
    "in both branches": (
        "if os.name == 'x':\n    config = tf.estimator.RunConfig(model_dir='m', save_summary_steps=5)\n"
        "else:\n    config = tf.estimator.RunConfig(model_dir='m', tf_random_seed=None)",
        ["TFM107"],
    ),
    "in three": (
        "if os.name == 'x':\n    config = tf.estimator.RunConfig('m', keep_checkpoint_max=1)\n"
        "elif os.name == 'y':\n    config = tf.estimator.RunConfig('m')\n"
        "else:\n    config = tf.estimator.RunConfig(model_dir='m', save_checkpoints_secs=60)",
        ["TFM107"],
    ),
    "replaced in one": (
        "config = tf.estimator.RunConfig('m')\nif os.name == 'x':\n"
        "    config = config.replace(save_checkpoints_steps=7)",
        ["TFM107"],
    ),
    "made anew in one": (
        "config = tf.estimator.RunConfig('m')\nif os.name == 'x':\n"
        "    config = tf.estimator.RunConfig(model_dir='m', log_step_count_steps=3)",
        ["TFM107"],
    ),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_run_configs_that_differ_in_what_does_not_count(name: str) -> None:
    lines, codes = CHOSEN[name]
    text = configured(CONDITION + lines)
    new = migrated(text)
    assert "RunConfig" not in new and "os.name" not in new and "model_dir = 'm'\n" in new
    assert sorted(set(review(text))) == [*codes, "TFM850"]


def test_a_branch_with_more_in_it_stays() -> None:
    lines = (
        "if os.name == 'x':\n    print('quick')\n    config = tf.estimator.RunConfig(save_summary_steps=None)\n"
        "else:\n    config = tf.estimator.RunConfig()"
    )
    assert "if os.name == 'x':\n    print('quick')\nelse:\n    pass\n" in migrated(configured(CONDITION + lines))


def test_the_branch_of_the_estimator_is_the_one_that_counts() -> None:
    text = configured("")
    at = text.index("estimator = ")
    lines = ""
    for test, name, seed in (("if os.name == 'x'", "one", 1), ("else", "two", 2)):
        config = f"config = tf.estimator.RunConfig(model_dir='{name}', tf_random_seed={seed})"
        made = text[at:].replace("estimator = ", f"{name} = ").replace("estimator.train", f"{name}.train").rstrip("\n")
        made = "\n".join([config, made]).replace("\n", "\n    ")
        lines += f"{test}:\n    {made}\n"
    new = migrated(text[:at] + "import os\n" + lines)
    first, second = new[new.index("\nif os.name") :].split("else:\n")
    assert "'one'" in first and "set_seed(1)" in first and "'two'" not in first
    assert "'two'" in second and "set_seed(2)" in second and "'one'" not in second


MADE_BY = {
    "a dict": (
        "settings = {'model_dir': 'm', 'tf_random_seed': 7, 'save_summary_steps': 3}",
        ", config=tf.estimator.RunConfig(**settings)",
    ),
    "a call of dict": (
        "settings = dict(model_dir='m', tf_random_seed=7)\nconfig = tf.estimator.RunConfig(**settings)",
        "",
    ),
    "a function": (
        'folder = \'m\'\n\n\ndef make(seed, folder, steps=3):\n    """Makes it."""\n'
        "    session = tf.ConfigProto()\n    session.allow_soft_placement = True\n"
        "    return tf.estimator.RunConfig(folder, seed, save_summary_steps=steps, session_config=session)\n\n\n",
        ", config=make(7, folder=folder)",
    ),
    "a function with a name": (
        "def make():\n    config = tf.estimator.RunConfig(model_dir='m')\n"
        "    config = config.replace(tf_random_seed=7)\n    return config\n\n\n",
        ", config=make()",
    ),
    "a DistributeConfig of nothing": (
        "",
        ", config=tf.estimator.RunConfig('m', 7, experimental_distribute=tf.contrib.distribute.DistributeConfig("
        "train_distribute=None, eval_distribute=None))",
    ),
}


@pytest.mark.parametrize("name", MADE_BY)
def test_run_configs_that_are_made_elsewhere(name: str) -> None:
    lines, argument = MADE_BY[name]
    new = migrated(configured(lines, argument or ", config=config"))
    assert "tf.random.set_seed(7)" in new and ("'m'" in new) and "make(" not in new.replace("make_inputs(", "")
    assert "settings" not in _program(new) and "RunConfig" not in new and "session" not in new


REFUSED_CONFIGS = {
    "a seed by condition": "if __name__:\n    config = tf.estimator.RunConfig(tf_random_seed=1)\n"
    "else:\n    config = tf.estimator.RunConfig(tf_random_seed=2)",
    "a dict by condition": "d = {'model_dir': 'm'}\nif len(open('a').read()):\n    d['tf_random_seed'] = 3\n"
    "config = tf.estimator.RunConfig(**d)",
    "used elsewhere": "config = tf.estimator.RunConfig()\nprint(config.master)",
    "of a function that is called twice": "def f():\n    return tf.estimator.RunConfig()\n\nconfig = f()\nprint(f())",
    "device_fn": "config = tf.estimator.RunConfig(device_fn=lambda op: '/cpu:0')",
    "device_fn that balances": "config = tf.estimator.RunConfig(\n    device_fn=tf.train.replica_device_setter(2, "
    "ps_strategy=tf.contrib.training.GreedyLoadBalancingStrategy(2, tf.contrib.training.byte_size_load_fn)))",
    "two": "config = tf.estimator.RunConfig()\nconfig = tf.estimator.RunConfig(model_dir='m')",
}


@pytest.mark.parametrize("name", REFUSED_CONFIGS)
def test_run_configs_that_are_refused(name: str) -> None:
    text = configured(REFUSED_CONFIGS[name])
    new, findings = run(text)
    # Of two in turn the first is one that nothing reads; so is that of a branch that no run comes to.
    # What a function makes is known by its value, and the other call of that stays.
    unread = name in ("two", "a seed by condition", "of a function that is called twice")
    assert new == text and ("TFM203" if unread else "TFM108") in manual(findings)


FOLLOWED_CONFIGS = {
    "in a loop": "for i in range(2):\n    config = tf.estimator.RunConfig(tf_random_seed=1)",
    "of a function that does more": "def f():\n    print()\n    return tf.estimator.RunConfig(tf_random_seed=1)\n\n"
    "config = f()",
    "of a function that computes": "def f(x):\n    x = x + 1\n    return tf.estimator.RunConfig(tf_random_seed=x)\n\n"
    "config = f(len(open('a').read()))",
    "changed by condition": "config = tf.estimator.RunConfig(tf_random_seed=1)\nif __name__:\n"
    "    config = config.replace(model_dir='m')",
    "asked for its folder": "config = tf.estimator.RunConfig(tf_random_seed=1)\nprint(config.model_dir)",
}


@pytest.mark.parametrize(
    ("lines", "kept", "said"),
    [
        ("d = {}\nprint(d)\n", "d = {}\nprint(d)\n", "model = model_fn("),
        (
            "d = {'model_dir': 'm'}\nif __name__:\n    d['tf_random_seed'] = 3\n",
            "if __name__:\n    d['tf_random_seed'] = 3\n",
            'model_dir = d["model_dir"]\ntf.random.set_seed(d["tf_random_seed"])\n',
        ),
    ],
    ids=["a dict that is read elsewhere", "a dict by a condition that always holds"],
)
def test_a_dict_whose_keywords_are_known_is_read_where_the_config_is_used(lines: str, kept: str, said: str) -> None:
    new, findings = run(configured(f"{lines}config = tf.estimator.RunConfig(**d)"))
    assert not manual(findings), findings
    assert kept in new and said in new and new.index(kept) < new.index(said)


@pytest.mark.parametrize(
    "change",
    [
        "d['tf_random_seed'] = 4",
        "other['tf_random_seed'] = 4",
        "def change():\n    d['tf_random_seed'] = 4\n\nchange()",
        "def change(x):\n    x.update(tf_random_seed=4)\n\nchange(d)",
        "def inner(*, y):\n    y.update(tf_random_seed=4)\n\ndef change(x):\n    inner(y=x)\n\nchange(x=d)",
        "def change():\n    global d\n    d = {'tf_random_seed': 4}\n\nchange()",
    ],
)
def test_a_dict_that_changes_before_its_config_is_used_is_refused(change: str) -> None:
    """The RunConfig has its values when it is made; the new program reads them where the Estimator is."""
    made = "d = {'tf_random_seed': 3}\nother = d\nconfig = tf.estimator.RunConfig(**d)\n"
    text = configured(f"{made}{change}")
    new, findings = run(text)
    assert new == text and manual(findings)


def test_a_function_that_only_reads_a_dict_does_not_change_it() -> None:
    made = "d = {'tf_random_seed': 3}\nconfig = tf.estimator.RunConfig(**d)\n"
    text = configured(f"{made}def show(x):\n    x = dict(x)\n    print(x)\n\nshow(d)")
    new, findings = run(text)
    assert not manual(findings) and 'tf.random.set_seed(d["tf_random_seed"])' in new


@pytest.mark.parametrize("name", FOLLOWED_CONFIGS)
def test_run_configs_that_are_followed(name: str) -> None:
    """Where it cannot stand beside the Estimator, a RunConfig is a dict of what counts, and that another object."""
    text = configured(FOLLOWED_CONFIGS[name])
    new, findings = run(text)
    assert not manual(findings) and "KerasEstimator(model_fn, " in new and "**config)" in new
    assert f"dict(seed={'x' if 'computes' in name else '1'})\n" in new
    assert name != "changed by condition" or "    config = dict(config, model_dir='m')\n" in new
    assert name != "asked for its folder" or 'print(config.get("model_dir"))\n' in new


@pytest.mark.parametrize("named", [False, True])
def test_a_plain_replica_device_setter_is_left_out(named: bool) -> None:
    setter = "tf.train.replica_device_setter(ps_tasks=2, worker_device='/job:worker')"
    line = f"setter = {setter}\n" if named else ""
    new, findings = run(configured(f"{line}config = tf.estimator.RunConfig(device_fn={'setter' if named else setter})"))
    assert "TFM140" in [f.code for f in findings] and not manual(findings), findings
    assert "device" not in new and "setter" not in new


HOOKS = {
    "in place": "estimator.train(input_fn, steps=3, hooks=[tf.train.StepCounterHook()])",
    "named": (
        'tensors = {"p": "softmax"}\nhook = tf.train.LoggingTensorHook(tensors=tensors, every_n_iter=5)\n'
        "estimator.train(input_fn, hooks=[hook], steps=3)"
    ),
    "in a list that grows": (
        "hooks = []\nhooks.append(tf.train.NanTensorHook('loss'))\nif __name__ == 'x':\n"
        "    hooks.append(tf.train.ProfilerHook(save_steps=10))\nestimator.train(input_fn, steps=3, hooks=hooks)"
    ),
    "of a spec": (
        "tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(input_fn, max_steps=3, hooks=["
        "tf.estimator.LoggingTensorHook({'loss': 'loss'}, 10)]), tf.estimator.EvalSpec(input_fn, hooks=[]))"
    ),
    "of an evaluation": "estimator.train(input_fn, steps=3)\nestimator.evaluate(input_fn, hooks=None)",
}


@pytest.mark.parametrize("name", HOOKS)
def test_hooks_that_report_are_left_out(name: str) -> None:
    text = program(driver=HOOKS[name])
    new = migrated(text)
    assert "Hook" not in new and "hook" not in new and "tensors" not in new and "if __name__" not in new
    assert ("TFM141" in review(text)) == ("Hook" in text)


def test_stop_at_step_hook_is_the_number_of_steps() -> None:
    new = migrated(program(driver="estimator.train(input_fn, hooks=[tf.train.StopAtStepHook(num_steps=7)])"))
    assert "input_fn().take(7)" in new
    new = migrated(program(driver="estimator.train(input_fn, hooks=[tf.train.StopAtStepHook(last_step=9)])"))
    assert new == migrated(program(driver="estimator.train(input_fn, max_steps=9)"))


def test_what_the_steps_of_a_hook_are_made_of_stays() -> None:
    driver = """def main(count):
    half = count // 2
    limit = half * 2
    estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.1})
    estimator.train(input_fn, hooks=[tf.train.StopAtStepHook(last_step=limit)])


main(8)"""
    old = program(driver=driver).replace(
        '\nestimator = tf.estimator.Estimator(model_fn, params={"rate": 0.1})\n', "\n", 1
    )
    new = migrated(old)
    assert "    half = count // 2\n    limit = half * 2\n" in new and "model.fit(input_fn().take(limit))" in new


OWN = """\
class Hook(tf.train.SessionRunHook):
    # looks on
    def __init__(self, every):
        self.every = every
        self.step = 0

    def before_run(self, run_context):
        self.step += 1  # counts
        return tf.train.SessionRunArgs(self.loss)

    def after_run(self, run_context, run_values):
        print(run_values.results)


hook = Hook(5)
estimator.train(input_fn, hooks=[hook])"""


def test_own_hooks_that_look_on_are_left_out() -> None:
    new = migrated(program(driver=OWN))
    assert "Hook" not in new and "hook" not in new and "looks on" not in new and "counts" not in new
    assert "model.fit(input_fn())" in new
    assert review(program(driver=OWN)) == ["TFM141", "TFM725"]


REFUSED_HOOKS = {
    "own that stops": OWN.replace("print(run_values.results)", "run_context.request_stop()"),
    "own that runs": OWN.replace("print(run_values.results)", "run_context.session.run(self.op)"),
    "own that is read later": OWN.replace("_fn, hooks", "_fn, steps=3, hooks") + "\nprint(Hook.limit)",
    "early stopping": (
        "hook = tf.contrib.estimator.stop_if_no_decrease_hook(estimator, 'loss', 100)\n"
        "estimator.train(input_fn, hooks=[hook])"
    ),
    "of a function": "estimator.train(input_fn, hooks=get_hooks(['a']))",
    "stops and steps": "estimator.train(input_fn, steps=3, hooks=[tf.train.StopAtStepHook(7)])",
    "feeds": "estimator.train(input_fn, steps=2, hooks=[tf.train.FeedFnHook(lambda: {})])",
    "listener": "estimator.train(input_fn, steps=3, saving_listeners=[listener])",
}


@pytest.mark.parametrize("name", REFUSED_HOOKS)
def test_hooks_that_may_change_the_training_are_refused(name: str) -> None:
    text = program(driver=REFUSED_HOOKS[name])
    new, findings = run(text)
    assert new == text and manual(findings)[0] in ("TFM110", "TFM162", "TFM164", "TFM203")


def test_hooks_of_the_spec_are_left_out() -> None:
    text = program(
        loss="loss = tf.losses.mean_squared_error(labels, logits)\ntf.identity(loss, name='mse')\n"
        "log = tf.train.LoggingTensorHook({'mse': 'mse'}, every_n_iter=10)\nhooks = [log]",
        spec=", training_hooks=hooks",
    )
    new = migrated(text)
    assert "Hook" not in new and "hook" not in new and "identity" not in new and "log" not in new.replace("logits", "")
    assert review(text) == ["TFM141"]
    refused = program(spec=", training_hooks=[Mine()]")
    assert manual(run(refused)[1]) == ["TFM110"] and run(refused)[0] == refused


RESULTS = {
    "an entry": 'results = estimator.evaluate(input_fn)\nprint(results["global_step"])',
    "a text": 'print("{global_step}: {loss}".format(**estimator.evaluate(input_fn)))',
}


@pytest.mark.parametrize("name", RESULTS)
def test_global_step_of_an_evaluation(name: str) -> None:
    new = migrated(program(driver="estimator.train(input_fn, steps=3)\n" + RESULTS[name]))
    results = "dict(model.evaluate(input_fn(), return_dict=True), global_step=int(model.optimizer.iterations.numpy()))"
    # However its lines are broken.
    assert results.replace(" ", "") in "".join(new.split()).replace(",)", ")")


def test_what_the_estimator_is_asked_for() -> None:
    driver = (
        "estimator.train(input_fn, steps=3)\nprint(estimator.model_dir)\n"
        "estimator.evaluate(input_fn, checkpoint_path=tf.train.latest_checkpoint(estimator.model_dir))"
    )
    text = program(driver=driver)
    new = migrated(text)
    assert "estimator = KerasEstimator(model_fn" in new and new.endswith(driver + "\n")
    new = migrated(text.replace('params={"rate": 0.1})', 'params={"rate": 0.1}, model_dir="m")'))
    assert "print(model_dir)" in new and new.count("latest_checkpoint") == 1
    other = "estimator.evaluate(input_fn, checkpoint_path='m/ckpt-7')"
    assert migrated(program(driver=other)).endswith(other + "\n")
