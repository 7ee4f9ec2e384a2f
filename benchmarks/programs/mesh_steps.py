"""Trains one migrated program again and again, whenever it is asked to; `benchmarks/mesh.py --times` starts it.

Every line of the input is a job in JSON for the process of its `way` to train (dtensor, custom, single, fit): `prepare`
with a program, its number of devices and that of model parts forks that process and runs the program's `main` once, on
so many of eight virtual CPUs; `train` trains the same model on the same data once more. All are answered with their
seconds, and with those of the CPU.
"""

import importlib.util
import json
import os
import signal
import sys
import time
import traceback

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf

CPUS = 8
MIRRORED = tf.distribute.MirroredStrategy


def prepare(way, path, devices, parts):
    """The training of a program as a function without arguments, all of it traced before."""
    tf.keras.backend.clear_session()
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {}
    if way == "dtensor":
        dims = [("batch", devices // parts)] + [("model", parts)] * (parts > 1)
        names = ["CPU:%d" % number for number in range(devices)]
        module.make_mesh = lambda: tf.experimental.dtensor.create_mesh(dims, devices=names)
    else:
        tf.distribute.MirroredStrategy = lambda: MIRRORED(["/cpu:%d" % number for number in range(devices)])
    if way == "fit":
        own = tf.keras.Model.fit

        def fit(model, *args, **kwargs):
            found["train"] = lambda: own(model, *args, **dict(kwargs, verbose=0))
            return own(model, *args, **dict(kwargs, verbose=0))

        tf.keras.Model.fit = fit
        try:
            module.main()
        finally:
            tf.keras.Model.fit = own
        return found["train"]
    begin = module.TrainingLoop.__init__

    def begin_and_keep(loop, *args):
        begin(loop, *args)
        found["loop"] = loop
        if way == "single":
            loop.steps_per_call = 1

    module.TrainingLoop.__init__ = begin_and_keep
    module.main()
    loop = found["loop"]
    return lambda: loop.train(loop.batches(module.input_fn()), module.STEPS)


def work(way, jobs, answers):
    """Answers jobs with the seconds that they took, and those of the CPU."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * CPUS)
    train = None
    for line in jobs:
        job = json.loads(line)
        begun, used = time.perf_counter(), time.process_time()
        if "prepare" in job:
            train = prepare(way, *job["prepare"])
        else:
            train()
        print(time.perf_counter() - begun, time.process_time() - used, file=answers, flush=True)


def fork(way):
    """A process that trains one program one way, where its jobs are written to, and its answers read from."""
    (jobs, job), (answer, answers) = os.pipe(), os.pipe()
    process = os.fork()
    if process == 0:
        os.close(job)
        os.close(answer)
        try:
            work(way, os.fdopen(jobs), os.fdopen(answers, "w"))
        except Exception:
            traceback.print_exc()
        os._exit(0)
    os.close(jobs)
    os.close(answers)
    return process, os.fdopen(job, "w"), os.fdopen(answer)


def end(worker):
    if worker is not None:
        process, to, _ = worker
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        to.close()


if __name__ == "__main__":
    shown = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what programs print is not for the one who asks
    workers = {}
    for each in sys.stdin:
        way = json.loads(each)["way"]
        if "prepare" in each:
            end(workers.pop(way, None))
            workers[way] = fork(way)
        _, to, back = workers[way]
        print(each, end="", file=to, flush=True)
        answer = back.readline()
        if not answer:
            break
        print(answer, end="", file=shown, flush=True)
    for worker in workers.values():
        end(worker)
