"""Whether looks into tf.data name the stage that holds a training up, and predict what its advice brings.

    python benchmarks/bench_pipelines.py [SECONDS] [CASE...]

Each pipeline trains for so long (12 s) with its planted bottleneck, and again with the setting that the advice names (two calls
at once where it names no number). Two are not held up by their input. TensorFlow 2.17 and newer.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tftracer.contract.input_pipelines import InputPipeline

#: Of the measured throughput: how far a prediction may be off.
WITHIN = 0.2
WARM_UP_S = 3.0


class Case(NamedTuple):
    #: (tensorflow, calls at once, as the advice says; 0: not changed) -> the dataset
    dataset: Callable[[Any, int], Any]
    stages: tuple[
        str, ...
    ]  # beginnings of the names or functions, one of which must be the limiting stage; (): the training's side
    step_s: float = 0.0
    has_change: bool = True


def sleeping(tf: Any, seconds: float) -> Callable[[Any], Any]:
    """A function of elements that waits, as for a network: the planted bottleneck."""

    def load(x: Any) -> Any:
        def wait(value: Any) -> Any:
            time.sleep(seconds)
            return value

        return tf.ensure_shape(tf.numpy_function(wait, [x], tf.int64), ())

    return load


def computing(tf: Any, size: int) -> Callable[[Any], Any]:
    def augment(x: Any) -> Any:
        noise = tf.random.uniform([size])
        for _ in range(8):
            noise = tf.sort(noise * 1.7 % 1.0)
        return x + tf.cast(noise[0], tf.int64)

    return augment


def pictures(tf: Any) -> list[Any]:
    noise = [tf.cast(tf.random.uniform([256, 256, 3], 0, 255, tf.int32), tf.uint8) for _ in range(8)]
    return [tf.io.encode_jpeg(each).numpy() for each in noise]


def endless(tf: Any) -> Any:
    return tf.data.Dataset.range(10**9)


def with_threads(tf: Any, dataset: Any, calls: int) -> Any:
    options = tf.data.Options()
    if calls > 1:
        options.threading.private_threadpool_size = calls
    return dataset.with_options(options)


def slow_map(tf: Any, calls: int) -> Any:
    rows = endless(tf).map(sleeping(tf, 0.01), num_parallel_calls=calls or 1).batch(4).prefetch(2)
    return with_threads(tf, rows, calls)


def computing_map(tf: Any, calls: int) -> Any:
    return endless(tf).map(computing(tf, 20_000), num_parallel_calls=calls or None).batch(4).prefetch(2)


def generator(tf: Any, calls: int) -> Any:
    def rows() -> Any:
        number = 0
        while True:
            time.sleep(0.01)  # the planted bottleneck
            number += 1
            yield number

    return tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([], tf.int64)).batch(2).prefetch(2)


def lines(tf: Any) -> str:
    path = Path(tempfile.gettempdir()) / "lines.txt"
    path.write_text("1 2 3\n" * 2_000_000)
    return str(path)


def small_reads(tf: Any, calls: int) -> Any:
    return tf.data.TextLineDataset([lines(tf)], buffer_size=64).repeat().batch(5000).prefetch(2)


def slow_files(tf: Any, calls: int) -> Any:
    def read_file(file: Any) -> Any:
        return tf.data.Dataset.range(10**6).map(sleeping(tf, 0.01))

    files = tf.data.Dataset.range(8)
    rows = files.interleave(read_file, cycle_length=calls or 2, num_parallel_calls=calls or None).batch(2).prefetch(2)
    return with_threads(tf, rows, calls)


def shuffle_refill(tf: Any, calls: int) -> Any:
    """Each epoch fills the buffer before it gives anything."""
    rows = tf.data.Dataset.range(300).map(sleeping(tf, 0.002), num_parallel_calls=calls or 1)
    return with_threads(tf, rows.shuffle(300).batch(2).repeat().prefetch(2), calls)


def decode(tf: Any, calls: int) -> Any:
    def decode_picture(x: Any) -> Any:
        return tf.image.resize(tf.io.decode_jpeg(x, channels=3), [64, 64])

    rows = tf.data.Dataset.from_tensor_slices(pictures(tf)).repeat()
    return rows.map(decode_picture, num_parallel_calls=calls or 1).batch(8).prefetch(2)


def large_elements(tf: Any, calls: int) -> Any:
    return tf.data.Dataset.from_tensors(tf.zeros([1_000_000])).repeat().batch(32).prefetch(2)


def no_prefetch(tf: Any, calls: int) -> Any:
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = options.experimental_optimization.map_and_batch_fusion = False
    rows = endless(tf).map(sleeping(tf, 0.008)).batch(2)
    return (rows.prefetch(2) if calls else rows).with_options(options)


def one_call(tf: Any, calls: int) -> Any:
    return endless(tf).batch(4).map(computing_rows(tf), num_parallel_calls=calls or 1).prefetch(2)


def computing_rows(tf: Any) -> Callable[[Any], Any]:
    def whiten(x: Any) -> Any:
        noise = tf.random.uniform([120_000])
        return x + tf.cast(tf.sort(tf.sort(noise) * 1.3 % 1.0)[0], tf.int64)

    return whiten


def python_function(tf: Any, calls: int) -> Any:
    def tokenize(x: Any) -> Any:
        def count(value: Any) -> Any:
            return value + sum(range(200_000)) % 2

        return tf.ensure_shape(tf.numpy_function(count, [x], tf.int64), ())

    return endless(tf).map(tokenize).batch(2).prefetch(2)


def cache_miss(tf: Any, calls: int) -> Any:
    rows = tf.data.Dataset.range(10**6).map(sleeping(tf, 0.01), num_parallel_calls=calls or 1)
    return with_threads(tf, rows.cache().batch(2).prefetch(2), calls)


def dropping_filter(tf: Any, calls: int) -> Any:
    def is_rare(x: Any) -> Any:
        return x % 20_000 == 0

    return endless(tf).filter(is_rare).batch(2).prefetch(2)


def parsing(tf: Any, calls: int) -> Any:
    features = {f"feature_{number}": tf.train.Feature(float_list=tf.train.FloatList(value=[1.0] * 200)) for number in range(40)}
    text = tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
    spec = {name: tf.io.FixedLenFeature([200], tf.float32) for name in features}

    def parse(x: Any) -> Any:
        return tf.io.parse_single_example(x, spec)["feature_0"]

    rows = tf.data.Dataset.from_tensors(text).repeat()
    return rows.map(parse, num_parallel_calls=calls or 1).batch(64).prefetch(2)


def distribution(tf: Any, calls: int) -> Any:
    rows = endless(tf).map(sleeping(tf, 0.01), num_parallel_calls=calls or 1).batch(4)
    return tf.distribute.MirroredStrategy(["CPU:0"]).experimental_distribute_dataset(rows)


def two_maps(tf: Any, calls: int) -> Any:
    """The first one limits, by far; the other one after that."""
    rows = endless(tf).map(sleeping(tf, 0.02), num_parallel_calls=calls or 1).map(sleeping(tf, 0.004), num_parallel_calls=1)
    return with_threads(tf, rows.batch(2).prefetch(2), calls)


def generator_without_prefetch(tf: Any, calls: int) -> Any:
    def rows() -> Any:
        for number in range(10**9):
            time.sleep(0.01)  # the planted bottleneck
            yield number

    dataset = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([], tf.int64)).batch(2)
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    return (dataset.prefetch(2) if calls else dataset).with_options(options)


def slow_training(tf: Any, calls: int) -> Any:
    """With more calls the training is the slower side."""
    rows = endless(tf).map(sleeping(tf, 0.02), num_parallel_calls=calls or 1).batch(4).prefetch(2)
    return with_threads(tf, rows, calls)


def tuned_wait(tf: Any, calls: int) -> Any:
    """AUTOTUNE stops at a thread a core."""
    rows = endless(tf).map(sleeping(tf, 0.02), num_parallel_calls=calls or tf.data.AUTOTUNE).batch(2).prefetch(2)
    return with_threads(tf, rows, calls)


def light(tf: Any, calls: int) -> Any:
    return endless(tf).map(lambda x: x + 1, num_parallel_calls=2).batch(8).prefetch(2)


def tuned(tf: Any, calls: int) -> Any:
    return endless(tf).map(sleeping(tf, 0.002), num_parallel_calls=tf.data.AUTOTUNE).batch(2).prefetch(tf.data.AUTOTUNE)


CASES = {
    "slow_map": Case(slow_map, ("load",)),
    "computing_map": Case(computing_map, ("augment",)),
    "generator": Case(generator, ("Generator", "rows"), has_change=False),
    "small_reads": Case(small_reads, ("TextLine", "Batch"), has_change=False),
    "slow_files": Case(slow_files, ("read_file", "load")),
    "shuffle_refill": Case(shuffle_refill, ("Shuffle", "load")),
    "decode": Case(decode, ("decode_picture",)),
    "large_elements": Case(large_elements, ("Batch",), has_change=False),
    "no_prefetch": Case(no_prefetch, ("load",), step_s=0.016),
    "one_call": Case(one_call, ("whiten",)),
    "python_function": Case(python_function, ("tokenize",), has_change=False),
    "cache_miss": Case(cache_miss, ("load",)),
    "dropping_filter": Case(dropping_filter, ("is_rare", "Filter"), has_change=False),
    "parsing": Case(parsing, ("parse",)),
    "distribution": Case(distribution, ("load",)),
    "two_maps": Case(two_maps, ("load",)),
    "generator_without_prefetch": Case(generator_without_prefetch, ("Generator", "rows"), step_s=0.02),
    "slow_training": Case(slow_training, ("load",), step_s=0.03),
    "tuned_wait": Case(tuned_wait, ("load",)),
    "light": Case(light, (), step_s=0.02, has_change=False),
    "tuned": Case(tuned, (), step_s=0.02, has_change=False),
}


def train(name: str, seconds: float, calls: int) -> None:
    """In a process of its own: prints elements a second after the first seconds."""
    import tftracer

    tftracer.hook_inject(start_web_server_on_start=False)
    import tensorflow as tf

    case = CASES[name]
    weight = tf.Variable(tf.ones([64, 64]))

    @tf.function
    def train_step() -> Any:
        return weight.assign_add(tf.matmul(weight, weight) * 1e-9)

    begin, elements, counted_from = time.monotonic(), 0, 0.0
    for _ in case.dataset(tf, calls):
        train_step()
        time.sleep(case.step_s)  # stands for the rest of a longer step
        now = time.monotonic()
        if now > begin + seconds:
            break
        if now > begin + WARM_UP_S:
            counted_from, elements = counted_from or now, elements + bool(counted_from)
    print(json.dumps(elements / max(1e-9, now - counted_from)))


def run(name: str, seconds: float, calls: int) -> tuple[float, InputPipeline | None]:
    import tftracer

    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TFTRACER_SPOOL_DIR": folder, "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, __file__, "--train", name, str(seconds), str(calls)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
        (file,) = Path(folder).glob("*.tftrace")
        with tftracer.open(file) as session:
            pipelines = session.source.input_pipelines()["pipelines"]
    return float(done.stdout.splitlines()[-1]), max(pipelines, key=lambda each: each["elements"], default=None)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 12.0
    named = predicted = met = 0
    names = sys.argv[2:] or list(CASES)
    for name in names:
        case = CASES[name]
        rate, pipeline = run(name, seconds, 0)
        limiting = [stage for stage in pipeline["stages"] if stage["is_limiting"]] if pipeline else []
        side = pipeline["side"] if pipeline else "nothing"
        labels = [label for stage in limiting for label in (stage["function"], stage["name"])]
        is_right = any(label.startswith(case.stages) for label in labels if label) if case.stages else side == "training"
        named += is_right
        print(f"{name}: {'right' if is_right else 'NOT'}: {side}, {labels}; {rate:.3g} a second", end="")
        if case.has_change:
            calls = re.search(r"num_parallel_calls=(\d+)", pipeline["advice"] if pipeline else "")
            changed, _ = run(name, seconds, int(calls[1]) if calls else 2)
            guess = (pipeline["predicted_rate"] if pipeline else None) or rate  # without a prediction nothing is to be gained
            print(f"; changed {changed:.3g}, predicted {guess:.3g}", end="")
            predicted += 1
            met += abs(guess - changed) <= WITHIN * changed
        print(f"\n    {pipeline['text']} {pipeline['advice']}" if pipeline else "", flush=True)
    print(f"{named} of {len(names)} right; {met} of {predicted} predictions within {WITHIN:.0%}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        train(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
