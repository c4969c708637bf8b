"""Tables as pandas' frames."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import tftracer
from tftracer.errors import UnsupportedError
from tftracer.export.tables.schema import TABLES

DATA = Path(__file__).parents[1] / "data"


def test_pandas_gets_the_same_numbers() -> None:
    with tftracer.open(DATA / "versions/2-spool.tftrace") as session:
        frame = session.slices().to_pandas()
        assert frame["dur_ns"].sum() == session.slices()["dur_ns"].sum()
        assert frame.groupby("op", observed=True)["dur_ns"].sum().to_dict()["NoOp"] > 0
        unknown = np.ma.getmaskarray(session.slices()["delay_ns"])
        assert str(frame["delay_ns"].dtype) == "Int64" and frame["delay_ns"].isna().sum() == unknown.sum()


def test_without_pandas_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with tftracer.open(DATA / "while_loop_tf2.15_cpu.pb") as session, pytest.raises(UnsupportedError, match="pip install pandas"):
        session.runs().to_pandas()


def test_every_table_becomes_a_frame() -> None:
    with tftracer.open(DATA / "ps_worker0_tf2.21_cpu.pb") as session:
        for name in TABLES:
            table = session.table(name)
            frame = table.to_pandas()
            assert (tuple(frame.columns), len(frame)) == (table.columns, len(table))
