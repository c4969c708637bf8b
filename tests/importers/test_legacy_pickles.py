"""Pickles of the originals open; those of anybody else are refused and run nothing."""

from __future__ import annotations

import collections
import contextlib
import datetime
import os
import pickle
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tftracer.errors import FormatError, TruncatedError, UnsafePickleError
from tftracer.importers import legacy_pickles
from tftracer.importers.open_any import open_any, open_pickle
from tftracer.importers.safe_pickle import PickleReader
from tftracer.trace.decode.descriptors import message_class

DATA = Path(__file__).parents[1] / "data"
LEGACY = DATA / "legacy"
STEP = (DATA / "foreign" / "step.pb").read_bytes()
CLASS = b"\x8c\x23tensorflow.core.protobuf.config_pb2\x8c\x0bRunMetadata\x93"
SOURCE = b"\x80\x04\x8c\x17tftracer.tracing_server\x8c\x0dTracingSource\x93)\x81"


def names(raw: bytes) -> list[str]:
    message = message_class("RunMetadata").FromString(raw)
    return [node.node_name for device in message.step_stats.dev_stats for node in device.node_stats]


@pytest.mark.parametrize("name", ["session.pickle", "session.pickle.gz"])
def test_a_session_of_the_original(name: str) -> None:
    session = open_any(LEGACY / name)
    assert session.kind == "tensorflow-tracer session"
    train, predict = session.runs  # the first fed other values at every second step: two entries in the original, one run
    assert train.title == "GradientDescent, loss:0"
    assert train.fetches == ["GradientDescent", "loss:0"]
    assert train.feeds == ["x:0"]
    assert train.steps == 8
    assert predict.title == "y:0"
    assert predict.steps == 8
    assert 0 < predict.mean_s < 1
    assert train.first_run_at < train.last_run_at
    assert "loss" in [name for trace in train.traces for name in names(trace.raw)]
    for run in session.runs:
        assert all(run.first_run_at <= trace.started_at <= run.last_run_at + 1 for trace in run.traces)


def test_what_the_original_dropped_stays_dropped() -> None:
    _, predict = open_any(LEGACY / "session.pickle").runs
    assert len(predict.traces) == 2  # of three: it kept two and put None in the place of the first
    assert all(trace.raw for trace in predict.traces)


def test_a_naive_date_is_local_time() -> None:
    run = open_any(LEGACY / "session.pickle").runs[0]
    assert run.first_run_at is not None
    assert datetime.datetime.fromtimestamp(run.first_run_at).year == 2026


@pytest.mark.parametrize("path", sorted(LEGACY.glob("run_metadata_*.pickle")), ids=lambda path: path.stem)
def test_run_metadata_of_any_protocol(path: Path) -> None:
    imported = open_pickle(path)
    assert imported.kind == "RunMetadata pickle"
    node_names = names(imported.runs[0].traces[0].raw)
    assert ("sum" if "python2" in path.name else "loss") in node_names
    if "python2" in path.name:
        assert imported.runs[0].traces[0].raw == STEP


@pytest.mark.parametrize("protocol", range(6))
def test_the_other_classes_of_a_session_in_any_protocol(protocol: int) -> None:
    """datetime, timedelta and OrderedDict, as Python itself pickles them; instances stay stubs."""
    when, span = datetime.datetime(2018, 11, 2, 3, 4, 5, 678901), datetime.timedelta(1, 2, 3)
    value = collections.OrderedDict([("when", when), ("span", span)])
    stub = PickleReader(pickle.dumps(value, protocol)).load()
    assert legacy_pickles.epoch_seconds(stub.items["when"]) == when.timestamp()
    assert legacy_pickles.seconds_of(stub.items["span"]) == span.total_seconds()


def test_what_we_pickle_reads_back() -> None:
    assert legacy_pickles.read(legacy_pickles.pickled(STEP)).runs[0].traces[0].raw == STEP
    assert legacy_pickles.read(legacy_pickles.pickled(b"")).runs[0].traces[0].raw == b""


# ------------------------------------------------------------------------------------------------------------- strangers


class Evil:
    def __init__(self, call: object, *args: object) -> None:
        self.call, self.args = call, args

    def __reduce__(self) -> Any:
        return self.call, self.args


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    ("call", "name"),
    [(os.system, "system"), (eval, "eval"), (open, "open"), (getattr, "getattr"), (collections.Counter, "Counter")],
)
def test_a_stranger_is_refused_by_name_and_runs_nothing(call: object, name: str, protocol: int, tmp_path: Path) -> None:
    target = tmp_path / "written"
    data = pickle.dumps(Evil(call, f"echo > {target}"), protocol)
    with pytest.raises(UnsafePickleError, match=rf"\.{name}'.*Nothing in it was executed"):
        legacy_pickles.read(data)
    assert not target.exists()


def test_a_stranger_inside_a_session() -> None:
    data = (LEGACY / "session.pickle").read_bytes()
    hostile = data.replace(b"datetime\x94\x8c\ttimedelta", b"builtins\x94\x8c\x09breakpoint"[:-1])
    with pytest.raises(UnsafePickleError, match=r"builtins\.breakpoin"):
        legacy_pickles.read(hostile)


@pytest.mark.parametrize(
    "name",
    [
        "datetime.timezone",
        "collections.defaultdict",
        "tftracer.tracing_server.TracingServer",
        "tensorflow.core.protobuf.config_pb2.ConfigProto",
        "tensorflow.core.protobuf.config_pb2.RunMetadata.FromString",
        "datetime.datetime.now",
        "__builtin__.eval",
        "copyreg.__newobj__",
    ],
)
def test_neighbours_of_the_known_names(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    with pytest.raises(UnsafePickleError):
        PickleReader(f"c{module}\n{attribute}\n.".encode()).load()


def pickle_of(value: object) -> bytes:
    return pickle.dumps(value, 4)


@pytest.mark.parametrize(
    ("what", "data"),
    [
        ("empty", b""),
        ("no end", b"\x80\x04"),
        ("a list", pickle_of([1, 2, 3])),
        ("nothing", pickle_of(None)),
        ("a bare class", b"\x80\x04" + CLASS + b"."),
        ("a class called without a tuple", b"\x80\x04" + CLASS + b"]R."),
        ("a string called", b"\x80\x04\x8c\x01a)R."),
        ("BUILD on a dictionary", b"\x80\x04}}b."),
        ("BUILD on a date", b"\x80\x04\x8c\x08datetime\x8c\x08datetime\x93)\x81}b."),
        ("BUILD with a tuple", b"\x80\x04" + CLASS + b")\x81N}\x86b."),
        ("a state without bytes", b"\x80\x04" + CLASS + b")\x81}\x8c\x0aserializedK\x01sb."),
        ("a persistent id", b"\x80\x04\x8c\x01aQ."),
        ("an extension code", b"\x82\x01."),
        ("INST", b"(ios\nsystem\n."),
        ("OBJ", b"(" + CLASS + b"o."),
        ("NEWOBJ_EX", CLASS + b")}\x92."),
        ("a key that cannot be hashed cheaply", b"}" + b")" + b"\x85" * 10_000 + b"K\x01s."),
        ("a key that is a long", b"}\x8a\x10" + b"\xff" * 16 + b"K\x01s."),
        ("an item without a value", b"}(K\x01u."),
        ("a memo that was never put", b"h\x05."),
        ("a mark that was never set", b"t."),
        ("more bytes than there are", b"\x8e" + struct.pack("<Q", 1 << 62) + b"abc."),
        ("more text than there is", b"\x8d" + struct.pack("<Q", 1 << 63) + b"abc."),
        ("a negative length", b"T" + struct.pack("<i", -5) + b"abc."),
        ("a number of a million digits", b"I" + b"9" * 1_000_000 + b"\n."),
        ("an encoding that is a codec", b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x03\x00\x00\x00zipt\x52."),
        (
            "a new object of another base",
            b"ccopy_reg\n_reconstructor\n(ctensorflow.core.protobuf.config_pb2\nRunMetadata\nK\x01Nt\x52.",
        ),
        ("nested marks", b"(" * 100_000 + b"."),
        ("text that is no UTF-8", b"\x8c\x02\xff\xfe."),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_broken_and_hostile_pickles_are_refused(what: str, data: bytes) -> None:
    with pytest.raises(FormatError) as refused:
        legacy_pickles.read(data)
    assert str(refused.value), what


def test_every_cut_of_a_pickle_is_refused() -> None:
    data = (LEGACY / "session.pickle").read_bytes()
    for end in range(len(data)):
        with pytest.raises(FormatError):
            legacy_pickles.read(data[:end])


def test_a_memo_index_costs_nothing() -> None:
    """CPython's own unpickler allocates a table as long as the index."""
    tracemalloc.start()
    try:
        assert PickleReader(b"Nr" + struct.pack("<I", 0xFFFFFFF0) + b".").load() is None
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_shared_value_cannot_be_multiplied() -> None:
    """One text of 100 kB, turned into bytes ten thousand times: a gigabyte from 170 kB."""
    text = b"X" + struct.pack("<I", 100_000) + b"a" * 100_000 + b"q\x00c_codecs\nencode\nq\x01"
    again = b"h\x01h\x00\x85R"
    with pytest.raises(FormatError, match="repeatedly"):
        PickleReader(text + b"]" + again * 10_000 + b".").load()


def test_shared_runs_are_looked_at_once() -> None:
    """A hundred thousand runs that are the same dictionary, whose fetches are 700 kB: 70 GB to look through, if each was."""
    fetches = "[" + ", ".join(f"<tf.Tensor 't{i}:0' shape=()>" for i in range(20_000)) + "]"
    profile = pickle.dumps({"info": {"fetches": fetches}, "stats": {"runs": 1}}, 2)[2:-1]
    shared = b"r" + struct.pack("<I", 12345)
    again = b"".join(b"J" + struct.pack("<i", i) + b"j" + struct.pack("<I", 12345) for i in range(1, 100_000))
    session = legacy_pickles.read(SOURCE + b"}(\x8c\x0c_run_profile}(K\x00" + profile + shared + again + b"uub.")
    assert len(session.runs) == 1
    assert session.runs[0].fetches == [f"t{i}:0" for i in range(1000)]
    assert session.runs[0].steps == 100_000


def test_a_session_with_nonsense_in_its_places() -> None:
    state = {"_run_profile": {"a": {"info": 5, "stats": [], "run_id": -3}, "b": 7}, "_traces": {0: "x"}}
    session = legacy_pickles.read(SOURCE + pickle.dumps(state, 4)[11:-1] + b"b.")
    assert [run.title for run in session.runs] == ["session.run"]
    assert not session.runs[0].traces


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_changed_session_is_read_or_refused(data: st.DataObject) -> None:
    whole = (LEGACY / "session.pickle").read_bytes()
    start = data.draw(st.integers(0, len(whole) - 1))
    replaced = data.draw(st.binary(max_size=8))
    gone = data.draw(st.integers(0, 8))
    with contextlib.suppress(FormatError):
        legacy_pickles.read(whole[:start] + replaced + whole[start + gone :])


def test_errors_say_what_to_do() -> None:
    with pytest.raises(TruncatedError, match="cut short"):
        legacy_pickles.read((LEGACY / "session.pickle").read_bytes()[:-1])
