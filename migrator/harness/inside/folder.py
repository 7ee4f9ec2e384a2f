"""The folder that one task writes, and what tasks of one run tell each other through files."""

import json
import os
import resource
import time

import appended
from parts import atomic_write

# The same graph is executed by remote workers: a path below this descriptor means "the folder of the
# process that runs the op", whichever process that is.
OWN_DESCRIPTOR = 931
REPLAY_DESCRIPTOR = 932
BARRIER_SECONDS = 180.0
# Weights that were evaluated are kept until they are more than this.
EVALUATED_BYTES = 1 << 30


def task_name(task):
    """ "worker:1" for {"type": "worker", "index": 1}."""
    return "%s:%d" % (task["type"], int(task["index"]))


def trainer_rank(name):
    """Sort key of task names: chief (or master, or local) first, then workers by index."""
    kind, _, index = name.partition(":")
    order = {"chief": 0, "master": 0, "local": 0, "worker": 1}
    return (order.get(kind, 2), kind, int(index or 0))


def process_alive(pid):
    """Whether a process runs (a zombie does not)."""
    try:
        with open("/proc/%d/stat" % pid) as stream:
            return stream.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (OSError, IOError):
        return False


def replay_folders(record):
    """The batch folders of another run's trainers, chief first."""
    found = []
    for entry in os.listdir(record):
        batches = os.path.join(record, entry, "batches")
        if os.path.isdir(batches) and os.listdir(batches):
            found.append((trainer_rank(entry.replace("-", ":")), batches))
    return [path for _, path in sorted(found)]


def call_boundaries(batches):
    """How many steps were done before each training call of the task whose batch folder this is."""
    path = os.path.join(os.path.dirname(batches), "calls.jsonl")
    if not os.path.exists(path):
        return []
    with open(path) as stream:
        return [json.loads(line)["steps_before"] for line in stream]


class TaskFolder(object):
    """``record/<type>-<index>``: what this task writes, and the barrier with the other tasks."""

    def __init__(self, plan, program):
        self.plan = plan
        self.program = program
        self.task = task_name(plan["task"])
        self.record = os.path.abspath(plan["record"])
        self.path = os.path.join(self.record, self.task.replace(":", "-"))
        self.trainers = sorted(plan.get("trainers") or [], key=trainer_rank)
        for name in (
            "gradients",
            "states",
            "slots",
            "activations",
            "evaluations",
            "predictions",
        ):
            os.makedirs(os.path.join(self.path, name), exist_ok=True)
        for name in ("steps", "more", "batches"):
            with open(os.path.join(self.path, name), "ab"):
                pass
        os.makedirs(os.path.join(self.record, "ready"), exist_ok=True)
        os.makedirs(plan["model_dir"], exist_ok=True)
        self._stamp = 0
        self._training = 0  # calls of this process that train now
        self.unrecorded = False
        self._open_descriptor(OWN_DESCRIPTOR, self.path)
        self.replay = None
        if plan.get("replay"):
            sources = replay_folders(plan["replay"])
            if not sources:
                raise RuntimeError("nothing to replay: no recorded batches in %s" % plan["replay"])
            if self.task in self.trainers and len(self.trainers) > len(sources):
                raise RuntimeError(
                    "nothing to replay: %d tasks were recorded and %d train here" % (len(sources), len(self.trainers))
                )
            if plan.get("turns") and self.trainers:
                # The order of the steps is one of the recorded trainers that have a counterpart here.
                sources = sources[: len(self.trainers)]
            self.replay_sources = sources
            self.replay = sources[self.ordinal() % len(sources)]
            self._open_descriptor(REPLAY_DESCRIPTOR, self.replay)
        self.write_json("task.json", {"task": self.task, "pid": os.getpid(), "program": program})

    def _open_descriptor(self, number, path):
        try:
            os.fstat(number)
            raise RuntimeError("file descriptor %d is in use already" % number)
        except OSError:
            pass
        opened = os.open(path, os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)

    def ordinal(self):
        """The place of this task among the trainers, from 0."""
        if self.task in self.trainers:
            return self.trainers.index(self.task)
        kind, _, index = self.task.partition(":")
        return int(index) if kind == "worker" else 0

    def leads(self):
        """Whether this task is the first trainer, or trains alone."""
        return not self.trainers or self.task not in self.trainers or self.task == self.trainers[0]

    def file(self, *names):
        return os.path.join(self.path, *names)

    def evaluated(self, step):
        """Where the weights that were evaluated at a step are to be kept; None where they are, or where there are so
        many by now that a disk would fill up with each evaluation.
        """
        path = self.file("evaluations", "%08d.npz" % step)
        taken = sum(os.path.getsize(self.file("evaluations", name)) for name in os.listdir(self.file("evaluations")))
        return None if os.path.exists(path) or taken > EVALUATED_BYTES else path

    def initial_file(self):
        """The weights before step 1: this task's own, or those of another task of the run; None before there are
        any.
        """
        others = sorted(os.listdir(self.record), key=lambda name: trainer_rank(name.replace("-", ":")))
        for entry in [os.path.basename(self.path), *others]:
            path = os.path.join(self.record, entry, "initial.npz")
            if os.path.exists(path):
                return path
        return None

    def leader_file(self, *names):
        """A file of the first trainer, where every reader looks for what the run as a whole came to."""
        return os.path.join(self.record, self.trainers[0].replace(":", "-"), *names)

    def await_file(self, path):
        """Waits for a file that appears when it is complete; RuntimeError if it does not come."""
        end = time.time() + BARRIER_SECONDS
        while not os.path.exists(path):
            if time.time() > end:
                raise RuntimeError("%s did not come" % path)
            time.sleep(0.01)

    def stamp(self):
        """The number of a record: the time in microseconds, greater each time within this task."""
        self._stamp = max(self._stamp + 1, int(time.time() * 1e6))
        return self._stamp

    def append(self, name, number, content):
        """Appends a record to "steps", "more" or "batches"."""
        appended.append(self.file(name), number, content)

    def another_training(self, model):
        """One more training of this script that is not recorded, since another model is; ``model`` numbers those that
        are not.
        """
        self.append_line("other_trainings.jsonl", {"time": time.time(), "model": model})

    def write_json(self, name, value):
        atomic_write(self.file(name), json.dumps(value, sort_keys=True, indent=1).encode("utf-8"))

    def append_line(self, name, value):
        with open(self.file(name), "a") as stream:
            stream.write(json.dumps(value, sort_keys=True) + "\n")

    def note_unrecorded(self, what, line):
        """Notes, once, that the program trains in a way whose steps cannot be recorded; ``line`` is where, or None."""
        if not self.unrecorded:
            self.unrecorded = True
            self.write_json("unrecorded.json", {"what": what, "line": line})

    def begin_training(self, steps_done):
        """Notes a call that trains (after so many steps), and tells evaluators that this process trains."""
        self._training += 1
        self.append_line("calls.jsonl", {"steps_before": steps_done})
        atomic_write(os.path.join(self.record, "ready", "training-%d" % os.getpid()), b"")

    def note_cpu(self, step):
        """Notes the processor time that this process had taken after a step."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.append_line("cpu.jsonl", {"step": step, "seconds": usage.ru_utime + usage.ru_stime})

    def end_training(self):
        """Notes that a call that trains came to its end, and not to an error."""
        self._training -= 1
        self.append_line("ended.jsonl", {"time": time.time()})

    def training_over(self):
        """Whether somebody trained and every process that trained is gone, or is this one and has come to its end."""
        pids = [
            int(name.partition("-")[2])
            for name in os.listdir(os.path.join(self.record, "ready"))
            if name.startswith("training-") and name.partition("-")[2].isdigit()
        ]
        here = os.getpid()
        return bool(pids) and not any(self._training if pid == here else process_alive(pid) for pid in pids)

    def arrive(self, stage):
        """Tells the other trainers that this one has come to ``stage`` ("start", "first-step")."""
        if self.task in self.trainers:
            atomic_write(os.path.join(self.record, "ready", "%s-%s" % (stage, self.task)), b"")

    def barrier(self, stage):
        """Waits until every trainer has come to ``stage``; RuntimeError naming the missing ones after a
        while.
        """
        if self.task not in self.trainers:
            return
        self.arrive(stage)
        end = time.time() + BARRIER_SECONDS
        while True:
            here = set(os.listdir(os.path.join(self.record, "ready")))
            missing = [task for task in self.trainers if "%s-%s" % (stage, task) not in here]
            if not missing:
                return
            if time.time() > end:
                raise RuntimeError("%s never came to %s" % (", ".join(missing), stage))
            time.sleep(0.002)
