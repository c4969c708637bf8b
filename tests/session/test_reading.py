"""Reading a file's records: each field of the messages is read once, and invalid values are not trusted."""

from __future__ import annotations

from typing import get_type_hints

from tftracer.contract.session import RunStatistics, Session, TraceRecord
from tftracer.session.files import reading, records
from tftracer.session.model import no_statistics


def test_each_field_of_the_messages_is_read_and_written() -> None:
    assert reading.SESSION_FIELDS.keys() == get_type_hints(Session).keys()
    assert reading.STATISTICS_FIELDS.keys() == get_type_hints(RunStatistics).keys()
    assert reading.TRACE_FIELDS.keys() == get_type_hints(TraceRecord).keys()
    assert set(records.WRITTEN_OF_CONTEXT) == reading.CONTEXT_FIELDS.keys()


def test_what_is_missing_or_of_a_wrong_type_is_not_known() -> None:
    for given in ({}, None, 7, dict.fromkeys([*reading.SESSION_FIELDS, *reading.TRACE_FIELDS], object())):
        assert reading.read_facts(given)["host"] == "" and reading.read_facts(given)["gpus"] is None
        assert reading.read_statistics(given) == no_statistics()
        record = reading.read_trace_record(given)
        assert (record["state"], record["asked_by"], record["nodes"]) == ("pending", "user", None)
        assert reading.read_context(given).gpus is None
