"""Objects counted by type, and which of them grow."""

from __future__ import annotations

from types import SimpleNamespace

from tftracer.memory_growth import object_counts
from tftracer.memory_growth.cause_of_growth import main_kind
from tftracer.memory_growth.growing_types import (
    Thing,
    growing,
    kind_of,
    place_of_calls,
    place_of_newest,
    tensor_bytes,
    things,
    typical_bytes,
)
from tftracer.memory_growth.object_counts import Census


class Kept:
    """Instances are looked at by Python's garbage collection."""

    def __init__(self) -> None:
        self.values = [1]


def counted(at: float, count: int) -> Census:
    return Census(at, {Kept: count, int: 50}, 0.0, 0)


def test_objects_are_counted_by_type() -> None:
    before = object_counts.take().counts.get(Kept, 0)
    kept = [Kept() for _ in range(30)]
    counts = object_counts.take().counts
    assert counts[Kept] == before + 30
    assert len(object_counts.objects_of([Kept], counts, 10).objects) == 10
    assert all(type(each) is Kept for each in object_counts.objects_of([Kept], counts, 100).objects)
    del kept


def test_only_what_becomes_more_in_both_spans_grows() -> None:
    assert growing(counted(0, 10), counted(10, 20), counted(20, 30)) == {Kept: 1.0}
    assert not growing(counted(0, 10), counted(10, 30), counted(20, 30))
    assert not growing(counted(0, 10), counted(10, 11), counted(20, 31))


def test_small_tensors_are_not_what_large_memory_is_put_down_to() -> None:
    tensors = Thing("tensors", "EagerTensor", 100, 5.0, 1_000.0)
    objects = Thing("objects", "train.Batch", 100, 5.0, None)
    assert main_kind([tensors, objects], 1e6, False) == ("objects", [objects, tensors])
    assert main_kind([tensors], 1e6, False) == ("unknown", [tensors])
    assert main_kind([tensors], 2_000.0, False)[0] == "tensors"
    assert main_kind([objects], 1e6, True)[0] == "garbage"


def test_few_large_tensors_that_a_step_uses_do_not_make_many_small_ones_large() -> None:
    kept = [tensor_of(1) for _ in range(30)]
    assert typical_bytes([*(tensor_of(1_000_000) for _ in range(4)), *kept], tensor_bytes) == 4
    assert typical_bytes([object()], tensor_bytes) is None


def tensor_of(elements: int) -> SimpleNamespace:
    return SimpleNamespace(shape=SimpleNamespace(num_elements=lambda: elements), dtype=SimpleNamespace(size=4))


def test_classes_of_the_script_itself_count() -> None:
    of_script = type("Batch", (), {"__module__": "__main__"})
    of_python = type("_Event", (), {"__module__": "_thread"})
    assert (kind_of(of_script), kind_of(of_python), kind_of(Kept)) == ("objects", "", "objects")


def test_the_line_is_of_the_newest_ops_of_a_graph_not_of_its_first() -> None:
    graph = object()
    model = [op_of(graph, number, "model.py", 3) for number in range(50)]
    grown = [op_of(graph, 50 + number, "train.py", 12) for number in range(20)]
    assert place_of_newest([*model, *grown], 20) == "train.py:12"
    assert place_of_newest([grown[0], op_of(object(), 900, "other.py", 1), *model, *grown[1:]], 20) == "train.py:12"
    assert place_of_newest([], 20) == ""


def op_of(graph: object, number: int, file: str, line: int) -> SimpleNamespace:
    return SimpleNamespace(graph=graph, _id=number, traceback=[(f"/home/user/{file}", line, "step", "")])


def function_of(number: int, *frames: tuple[str, int]) -> SimpleNamespace:
    op = SimpleNamespace(traceback=[(f"/home/user/{file}", line, "", "") for file, line in frames])
    return SimpleNamespace(graph=SimpleNamespace(_graph_key=f"graph-key-{number}/", inputs=[SimpleNamespace(op=op)]))


def test_the_line_of_the_calls_that_traced_the_newest_functions_not_one_within_them() -> None:
    model = [function_of(number, ("model.py", number)) for number in range(12)]
    calls = ("train.py", 30), ("site-packages/tensorflow/polymorphic_function.py", 9)
    grown = [function_of(100 + number, *calls, ("train.py", 7)) for number in range(5)]
    assert place_of_calls([*grown, *model], 5) == "train.py:30"
    assert place_of_calls([*grown[:3], *model], 5) == "" == place_of_calls([], 5)


def test_new_models_are_no_retracing() -> None:
    """Each has variables, and functions of its own. Functions alone are traced again."""
    kinds: dict[type, str] = {type("Concrete", (), {}): "functions", type("Variable", (), {}): "variables"}
    rates, more = dict.fromkeys(kinds, 1.0), dict.fromkeys(kinds, 20)
    assert [each.kind for each in things(rates, more, kinds, [], tensor_bytes)] == ["variables", "functions"]
    functions = {each: kind for each, kind in kinds.items() if kind == "functions"}
    assert [each.kind for each in things(rates, more, functions, [], tensor_bytes)] == ["functions"]
