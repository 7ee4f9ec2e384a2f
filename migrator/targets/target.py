"""The shape of a target (a strategy) and of a loop: what a module of this package says about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from migrator.targets.plan import TrainingPlan


def _nothing(plan: TrainingPlan) -> list[str]:
    return []


def _as_it_is(plan: TrainingPlan, dataset: str, depth: int) -> str:
    return dataset


@dataclass(frozen=True)
class Target:
    """A strategy that a migrated program runs on.

    - `word`: what `--strategy` calls it
    - `classes`: the last part of the names of the TensorFlow 1 classes that ask for it in a RunConfig
    - `reads_cluster`: the program finds its task in TF_CONFIG when it starts, and an evaluator may be one
    - `parameter_servers`: variables may live on parameter servers, which a coordinator drives
    - `mirrored_workers`: workers may train in step, each in a process of its own
    - `replicas`: one process may train several replicas in step
    - `fits_on_keras3`: `Model.fit` works there on TensorFlow 2.21 with Keras 3
    - `loops_on_keras3`: loops of the program's own work there
    - `helper`: a function beside the program that makes the strategy: its source text for a name, a partitioner (None:
      variables are not split) and an indent
    - `set_up`: the lines that make the strategy, which a model is then made in the scope of; none on one device
    - `feed`: the expression that `fit` is given for a dataset of per-replica batches, on a line of this depth
    - `creates`: `feed` gives a function of datasets, for which `fit` must know its steps
    - `counts`: `fit` and `evaluate` are told their steps, of which several may be made in one execution
    - `scope`: what the object is called in whose scope a model is made
    - `helper_name`: what the helper is called
    - `loop`: the only loop that trains there, whatever `--loop` says
    - `mesh`: the devices are a mesh, which the function that makes the model is given
    - `dimensions`, `layouts`: those of the mesh beside the batch's, and what variables are divided over, see
      `dtensor.Layouts`
    """

    word: str
    classes: tuple[str, ...] = ()
    reads_cluster: bool = False
    parameter_servers: bool = False
    mirrored_workers: bool = False
    replicas: bool = False
    fits_on_keras3: bool = False
    loops_on_keras3: bool = False
    helper: Callable[[str, str | None, str], str] | None = None
    set_up: Callable[[TrainingPlan], list[str]] = _nothing
    feed: Callable[[TrainingPlan, str, int], str] = _as_it_is
    creates: bool = False
    counts: bool = False
    scope: str = "strategy"
    helper_name: str = "make_strategy"
    loop: Loop | None = None
    mesh: bool = False
    dimensions: tuple[tuple[str, int], ...] = ()
    layouts: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def in_step(self) -> bool:
        """Whether several replicas may train in step: Keras adds up what they compute, an Estimator took the mean."""
        return self.mirrored_workers or self.replicas

    @property
    def per_replica(self) -> bool:
        """Whether one process may train several replicas, each with batches of its own."""
        return self.replicas and self.creates

    @property
    def alone(self) -> bool:
        """Whether this is one device: there is no strategy to make, and no scope."""
        return not self.reads_cluster and not self.replicas and not self.mesh


@dataclass(frozen=True)
class LoopShape:
    """What the class of a loop of the program's own has to do for a program.

    - `of_class`: the model's loss is one of Keras' classes, else a function of the program's own
    - `saves`: the program has a model_dir
    - `measures`: it has metrics
    - `evaluates`: it evaluates
    - `divides`: replicas divide the batches of the input function, so that a step is what it was on one device
    - `draws`: each replica draws whole batches, as those of an Estimator with a strategy do
    - `sized`: where they draw, all datasets know the number of their batches
    - `averages`: replicas that draw have moving averages of their own
    - `on_workers`: the replicas may be those of several processes
    - `on_servers`: a coordinator may give the steps to workers, which draw batches of their own
    - `counts`: every training is told its steps, of which many are made in one call
    - `on_keras3`: it is written for Keras 3
    - `of_batch`: the model computes its loss from whole batches, and keeps the mean of them
    - `measures_itself`: the model updates its metrics itself
    - `may_end`: the data of train_and_evaluate may end before its last period
    - `rates`: whose learning rates a checkpoint leaves as they are, see setup.rates_kept ("": nobody's)
    """

    of_class: bool
    saves: bool
    measures: bool
    evaluates: bool = True
    divides: bool = False
    draws: bool = False
    sized: bool = False
    averages: bool = False
    on_workers: bool = False
    on_servers: bool = False
    counts: bool = False
    on_keras3: bool = False
    of_batch: bool = False
    measures_itself: bool = False
    may_end: bool = False
    rates: str = ""


@dataclass(frozen=True)
class Loop:
    """How a program trains: by `fit`, or by a loop of its own.

    - `word`: what `--loop` calls it
    - `train_and_evaluate`: the statements that replace `tf.estimator.train_and_evaluate`, as source text at depth 0
    - `train`: the lines that train on a dataset for so many steps (None: all of it); absolute steps count from step 0
    - `evaluate`: the expression that evaluates a dataset, on a line of this depth
    - `set_up`: lines after those that make the model
    - `make`: the class beside the program whose steps these are, which also restores what was saved: its source text
      for a name, an indent and a shape; None where the steps are those of `fit`
    """

    word: str
    train_and_evaluate: Callable[[TrainingPlan], str]
    train: Callable[[TrainingPlan, str, str | None, bool], list[str]]
    evaluate: Callable[[TrainingPlan, int], str]
    set_up: Callable[[TrainingPlan], list[str]] = _nothing
    make: Callable[[str, str, LoopShape], str] | None = None

    @property
    def own(self) -> bool:
        """Whether the steps are those of a class beside the program."""
        return self.make is not None
