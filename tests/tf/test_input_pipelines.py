"""Which stage of real pipelines limits, as looks into their iterators tell. Before TensorFlow 2.17 there are none."""

from __future__ import annotations

from pathlib import Path

import pytest
from tf.scripts import run_eager_script

tf = pytest.importorskip("tensorflow")

WAIT = """
import threading, time
def pipelines():
    recorder.flush()
    return recorder.input_pipelines()
def until(is_known):
    while not is_known(pipelines()):
        time.sleep(0.05)
    return pipelines()
def slowly(value):
    time.sleep(0.01)
    return value
def slow_map(x):
    return tf.ensure_shape(tf.numpy_function(slowly, [x], tf.int64), ())
stop = threading.Event()
def train(iterator):
    for _ in iterator:
        if stop.is_set():
            break
def start(action, *arguments):
    thread = threading.Thread(target=action, args=arguments, daemon=True)
    thread.start()
    return thread
endless = tf.data.Dataset.range(10**9)
looked = tuple(map(int, tf.__version__.split(".")[:2])) >= (2, 17)
"""


def test_the_slow_stage_of_an_eager_loop_is_named_with_its_setting(tmp_path: Path) -> None:
    run_eager_script(
        WAIT
        + """
training = start(train, iter(endless.map(slow_map, num_parallel_calls=1).batch(2).prefetch(2)))
if looked:
    def known(answer):
        return answer["pipelines"] and any(stage["is_limiting"] for stage in answer["pipelines"][0]["stages"])
    (pipeline,) = until(known)["pipelines"]
    (stage,) = [stage for stage in pipeline["stages"] if stage["is_limiting"]]
    assert stage["function"] == "slow_map" and stage["parallelism"] == 1 and not stage["is_tuned"], stage
    assert pipeline["history"], pipeline
    assert pipeline["side"] == "input" and "num_parallel_calls" in pipeline["advice"], pipeline
else:
    answer = until(lambda answer: answer["text"])
    assert answer["pipelines"] == [] and "2.17" in answer["text"], answer
stop.set()
training.join()
""",
        tmp_path,
    )


def test_the_verdict_of_a_trace_names_the_stage_that_holds_the_training_up(tmp_path: Path) -> None:
    run_eager_script(
        WAIT
        + """
from tftracer.trace.answers import Answers
step = tf.function(lambda x: tf.reduce_sum(x + 1))
def train_steps(iterator):
    for x in iterator:
        step(x)
        if stop.is_set():
            break
training = start(train_steps, iter(endless.map(slow_map, num_parallel_calls=1).batch(4).prefetch(2)))
while not (known := [run for run in recorder.runs() if run["steps"] > 10]):
    recorder.flush()
run = known[0]["id"]
if looked:
    from tftracer.input_pipelines.answer import LOOKED_S
    began_at = []
    def limits_for_long(answer):
        limited = [each for each in answer["pipelines"] if any(stage["is_limiting"] for stage in each["stages"])]
        began_at.extend(each["at"] for each in limited)
        return limited and limited[0]["at"] - began_at[0] >= LOOKED_S
    until(limits_for_long)
recorder.request_traces(run, 1)
while not (traces := [trace for each in recorder.runs() if each["id"] == run for trace in each["traces"]]):
    recorder.flush()
stop.set()
training.join()
context = recorder.trace_context(traces[0]["id"])
verdict = Answers(recorder.trace_bytes(traces[0]["id"]), context).verdict()
waits = [sentence for sentence in verdict["sentences"] if sentence["code"] == "between_steps"]
assert waits and ("slow_map" in waits[0]["text"]) == looked == bool(context.input_advice), verdict
assert not looked or waits[0]["advice"] == context.input_advice, verdict
""",
        tmp_path,
    )


def test_looks_go_on_while_the_training_is_blocked_in_next(tmp_path: Path) -> None:
    """And nothing that the training waits for is held by a look: the blocked call ends when its element comes."""
    run_eager_script(
        WAIT
        + """
comes, passed = threading.Event(), []
def blocked(value):
    if value == 3:
        comes.wait()
    return value
blocking = endless.map(lambda x: tf.ensure_shape(tf.numpy_function(blocked, [x], tf.int64), ()))
def train_blocked():
    for value in blocking.take(5):
        passed.append(int(value))
training, beside = start(train_blocked), start(train, iter(endless.batch(2).map(lambda x: x + 1).prefetch(2)))
if looked:
    def newest(answer):
        return max(each["at"] for each in answer["pipelines"] if each["elements"] > 3)
    def are_both_seen(answer):
        return len(answer["pipelines"]) == 2 and any(each["elements"] == 3 for each in answer["pipelines"])
    answer = until(are_both_seen)
    before = newest(answer)
    until(lambda answer: newest(answer) > before + 1)
    assert passed == [0, 1, 2] and training.is_alive(), passed
stop.set()
comes.set()
training.join()
beside.join()
assert passed == [0, 1, 2, 3, 4]
""",
        tmp_path,
    )


def test_the_pipeline_of_keras_fit_is_found(tmp_path: Path) -> None:
    run_eager_script(
        WAIT
        + """
model = network()
def elements():
    while not stop.is_set():
        time.sleep(0.005)
        yield np.ones((32, 8), np.float32), np.ones((32, 1), np.float32)
signature = (tf.TensorSpec((32, 8), tf.float32), tf.TensorSpec((32, 1), tf.float32))
dataset = tf.data.Dataset.from_generator(elements, output_signature=signature)
training = start(lambda: model.fit(dataset, epochs=1, verbose=0))
if looked:
    def limiting(answer):
        return [stage["name"] for each in answer["pipelines"] for stage in each["stages"] if stage["is_limiting"]]
    answer = until(limiting)
    assert limiting(answer) == ["Generator"]
    assert all("from_generator(elements)" in each["title"] for each in answer["pipelines"]), answer
    assert "from_generator(elements) at <string>:" in answer["pipelines"][0]["text"], answer
    def waits(_):
        parts = recorder.ledger()["parts"]
        return [each["duration_s"] for part in parts if part["kind"] == "input" for each in part["items"]]
    until(lambda answer: sum(waits(answer)) > 0.2)
stop.set()
training.join()
""",
        tmp_path,
    )


def test_a_sessions_iterator_is_said_to_be_out_of_reach(tmp_path: Path) -> None:
    run_eager_script(
        WAIT
        + """
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    element = tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next()
    assert session.run(element) == 0
assert "sessions" in until(lambda answer: answer["text"])["text"]
""",
        tmp_path,
    )
