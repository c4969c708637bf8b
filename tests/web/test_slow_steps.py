"""The API about slow steps, on a real socket."""

from __future__ import annotations

from pathlib import Path

import msgpack
import pytest
from fake_source import FakeSource
from made_stalls import a_profile, put, run_of
from recording import RAW, recording, step
from web_client import Client, serving

from tftracer.contract import stalls

pytestmark = pytest.mark.usefixtures("no_stray_logs")

ANSWERS = {
    "/api/runs/1/stalls": stalls.RunStalls,
    "/api/runs/1/gaps": stalls.GapProfile,
    "/api/stalls": stalls.StallList,
    "/api/stalls/1": stalls.StallDetail,
}


@pytest.mark.parametrize("path", ANSWERS)
def test_what_is_asked_is_answered_as_json_and_as_msgpack(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status == 200 and set(answer.json) == set(ANSWERS[path].__annotations__)
    packed = client("GET", path, Accept="application/msgpack")
    assert msgpack.unpackb(packed.body) == answer.json


def test_sampling_is_asked_for(client: Client, source: FakeSource) -> None:
    assert client("POST", "/api/runs/1/gaps").json == {"ok": True}
    assert source.asked == [("gaps", 1)]
    source.live = False
    refused = client("POST", "/api/runs/1/gaps")
    assert (refused.status, refused.json["error"]["code"]) == (409, "unsupported")


UNKNOWN = ["/api/runs/2/stalls", "/api/runs/x/gaps", "/api/stalls/2", "/api/stalls/-1", "/api/runs/2/gaps"]


@pytest.mark.parametrize("path", UNKNOWN)
def test_what_is_not_there(client: Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status, answer.json["error"]["code"]) == (404, "unknown")


def test_wrong_methods(client: Client) -> None:
    assert client("POST", "/api/runs/1/stalls", {}).status == 405
    assert client("DELETE", "/api/stalls/1").status == 405


@pytest.mark.parametrize("in_helper", [True, False])
def test_lines_that_are_sampled_later_reach_a_verdict_that_was_asked_for(tmp_path: Path, in_helper: bool) -> None:
    with recording(tmp_path) as recorder:
        run = run_of(recorder, 20)
        step(recorder, 500, raw=RAW)  # a second after the one before it
        assert recorder.flush()
        (trace,) = recorder.run(run.run_id)["traces"]
        with serving(recorder, engine=recorder.engine if in_helper else None) as client:
            path = f"/api/traces/{trace['id']}"
            before, timeline = client.get(f"{path}/verdict"), client.get(f"{path}/timeline")
            assert "Which lines run then was not sampled" in before.body.decode()
            put(recorder, a_profile(run))
            after = client.get(f"{path}/verdict", If_None_Match=before.headers["Etag"])
            assert "Sampled between steps: load_batch() (train.py:88) 83%" in after.body.decode()
            assert client.get(f"{path}/verdict", If_None_Match=after.headers["Etag"]).status == 304
            assert client.get(f"{path}/timeline", If_None_Match=timeline.headers["Etag"]).status == 304  # it alone has changed
