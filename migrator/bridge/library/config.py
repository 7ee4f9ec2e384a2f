"""How a training is run, and the task of TF_CONFIG that this process is."""

from __future__ import annotations

import contextlib
import copy
import json
import os

import tensorflow as tf


class TaskType:
    """The roles of a cluster."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = "evaluator"


class RunConfig:
    """The settings of an Estimator, and what TF_CONFIG says of the cluster and of this task."""

    def __init__(
        self,
        model_dir=None,
        tf_random_seed=None,
        save_summary_steps=100,
        save_checkpoints_steps=None,
        save_checkpoints_secs=None,
        session_config=None,
        keep_checkpoint_max=5,
        keep_checkpoint_every_n_hours=10000,
        log_step_count_steps=100,
        train_distribute=None,
        device_fn=None,
        protocol=None,
        eval_distribute=None,
        experimental_distribute=None,
        experimental_max_worker_delay_secs=None,
        session_creation_timeout_secs=7200,
        checkpoint_save_graph_def=True,
    ):
        if save_checkpoints_steps is not None and save_checkpoints_secs is not None:
            raise ValueError("`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set.")
        if save_checkpoints_steps is None and save_checkpoints_secs is None:
            save_checkpoints_secs = 600
        self.model_dir = model_dir
        self.tf_random_seed = tf_random_seed
        self.save_summary_steps = save_summary_steps
        self.save_checkpoints_steps = save_checkpoints_steps
        self.save_checkpoints_secs = save_checkpoints_secs
        self.session_config = session_config
        self.keep_checkpoint_max = keep_checkpoint_max
        self.keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self.log_step_count_steps = log_step_count_steps
        if experimental_distribute is not None:
            train_distribute = train_distribute or experimental_distribute.train_distribute
            eval_distribute = eval_distribute or experimental_distribute.eval_distribute
        self.train_distribute = train_distribute
        self.device_fn = device_fn
        self.protocol = protocol
        self.eval_distribute = eval_distribute
        self.experimental_max_worker_delay_secs = experimental_max_worker_delay_secs
        self.session_creation_timeout_secs = session_creation_timeout_secs
        self.checkpoint_save_graph_def = checkpoint_save_graph_def
        self._read_cluster(json.loads(os.environ.get("TF_CONFIG") or "{}"))
        if session_config is not None and not self.cluster_spec.jobs:
            _make_cpus(session_config.device_count.get("CPU", 1))

    def _read_cluster(self, tf_config):
        """The properties of the cluster, as TF_CONFIG gives them; one process without it."""
        cluster = dict(tf_config.get("cluster") or {})
        task = tf_config.get("task") or {}
        self.service = tf_config.get("service")
        self.cluster_spec = tf.train.ClusterSpec(cluster)
        self.task_type = task.get("type", TaskType.WORKER)
        self.task_id = int(task.get("index", 0))
        self.evaluation_master = ""
        self.num_ps_replicas = len(cluster.get(TaskType.PS, []))
        chiefs = len(cluster.get(TaskType.CHIEF, [])) + len(cluster.get(TaskType.MASTER, []))
        self.num_worker_replicas = (len(cluster.get(TaskType.WORKER, [])) + chiefs) if cluster else 1
        if self.task_type == TaskType.EVALUATOR:
            self.num_ps_replicas, self.num_worker_replicas, self.cluster_spec = 0, 0, tf.train.ClusterSpec({})
        first = self.task_type == TaskType.WORKER and self.task_id == 0
        self.is_chief = self.task_type in (TaskType.CHIEF, TaskType.MASTER) or (first and not chiefs)
        self.master = ""
        if cluster and self.task_type in cluster and len(cluster) + len(cluster[self.task_type]) > 2:
            self.master = "grpc://" + cluster[self.task_type][self.task_id]
        self.global_id_in_cluster = None
        if self.task_type != TaskType.EVALUATOR:
            order = [job for job in (TaskType.CHIEF, TaskType.MASTER, TaskType.WORKER, TaskType.PS) if job in cluster]
            before = order[: order.index(self.task_type)] if self.task_type in order else []
            self.global_id_in_cluster = sum(len(cluster[job]) for job in before) + self.task_id

    def replace(self, **settings):
        """Returns a copy with other settings."""
        new = copy.copy(self)
        known = {name for name in vars(self) if not name.startswith("_")}
        for name, value in settings.items():
            if name not in known:
                raise ValueError(f"Replacing {name} is not supported.")
            setattr(new, name, value)
        if settings.get("save_checkpoints_steps") is not None and "save_checkpoints_secs" not in settings:
            new.save_checkpoints_secs = None
        if settings.get("save_checkpoints_secs") is not None and "save_checkpoints_steps" not in settings:
            new.save_checkpoints_steps = None
        return new


def _make_cpus(count):
    """Makes as many CPUs as a session would have, unless TensorFlow has begun, as it has where a strategy was made."""
    cpus = tf.config.list_physical_devices("CPU")
    if count > 1 and len(cpus) == 1 and tf.config.get_logical_device_configuration(cpus[0]) is None:
        with contextlib.suppress(RuntimeError):
            tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * count)
