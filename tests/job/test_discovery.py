"""Where the processes of each launcher look for their hub, and the file by which those of one host find it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tftracer.errors import StorageError
from tftracer.job.agent.discovery import (
    Target,
    first_node,
    hub_file,
    job_name,
    make_plan,
    parse_target,
    publish_hub,
    read_hub,
    withdraw_hub,
)
from tftracer.session.process.launcher import Environment, detect_launcher, no_launcher


def horovod(rank: int, size: int = 4, port: int = 1) -> dict[str, str]:
    return {
        "HOROVOD_RANK": str(rank),
        "HOROVOD_SIZE": str(size),
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": "10.0.0.1",
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port),
    }


def ps(role: str, index: int) -> dict[str, str]:
    cluster = {"ps": ["p:1"], "worker": ["[::1]:2222", "w1:2222"]}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})}


def name(environ: Environment) -> str:
    return job_name(detect_launcher(environ, {}), environ)


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (horovod(0), horovod(3), horovod(0, port=2)),
        (ps("worker", 0), ps("ps", 0), {"TF_CONFIG": ps("worker", 0)["TF_CONFIG"].replace("w1:2222", "w1:2223")}),
        *(
            ({"OMPI_COMM_WORLD_RANK": "0", "PMIX_NAMESPACE": "a"}, {"OMPI_COMM_WORLD_RANK": "1", "PMIX_NAMESPACE": "a"}, other)
            for other in [{"OMPI_COMM_WORLD_RANK": "0", "PMIX_NAMESPACE": "b"}]
        ),
        (
            {"SLURM_PROCID": "0", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"},
            {"SLURM_PROCID": "1", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"},
            {"SLURM_PROCID": "1", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "1"},
        ),
    ],
)
def test_processes_of_one_job_agree_on_its_name(one: Environment, same: Environment, other: Environment) -> None:
    assert name(one) == name(same) != name(other)


def test_ranks_that_hydra_started_agree() -> None:
    assert name({"PMI_RANK": "0", "PMI_SIZE": "2"}) == name({"PMI_RANK": "1", "PMI_SIZE": "2"})


def test_ranks_of_several_hosts_that_hydra_started_are_told_where_the_hub_is() -> None:
    """Their parent processes differ, so no job name is the same for all: a hub that the user names is accepted."""
    environ = {"PMI_RANK": "1", "PMI_SIZE": "2", "TFTRACER_HUB": "node1:9999"}
    assert make_plan(detect_launcher(environ, {}), environ).job == ""
    numbered = {**environ, "I_MPI_HYDRA_UUID": "7"}
    assert make_plan(detect_launcher(numbered, {}), numbered).job.startswith("mpich-")


def test_a_job_may_be_named_by_hand() -> None:
    assert name({**horovod(0), "TFTRACER_JOB": "mine"}) == "mine" == name({"TFTRACER_JOB": " mine "})
    assert name({}) == ""


def test_rank_0_is_the_hub_and_a_single_process_has_no_job() -> None:
    def plan(environ: Environment):  # type: ignore[no-untyped-def]
        return make_plan(detect_launcher(environ, {}), environ)

    assert plan(horovod(0)).is_hub and not plan(horovod(1)).is_hub
    assert plan(horovod(0, size=1)).has_no_job and make_plan(no_launcher(), {}).has_no_job
    assert plan(ps("worker", 0)).is_hub and not plan(ps("ps", 0)).is_hub
    assert not plan({**horovod(0), "TFTRACER_HUB": "node1:9999"}).is_hub


def test_guesses_need_a_shared_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TFTRACER_HUB_DIR", str(tmp_path))
    environ = {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "node[07-09],gpu1"}
    place = detect_launcher(environ, {})
    assert make_plan(place, environ).targets() == []
    hosts = [(t.host, t.port) for t in make_plan(place, environ, shared_token=True).targets()]
    assert hosts == [("node07", port) for port in (9999, 10000, 10001, 10002)]
    worker = ps("worker", 1)
    assert make_plan(detect_launcher(worker, {}), worker, shared_token=True).targets()[0].host == "::1"


def test_what_the_user_says_goes_before_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TFTRACER_HUB_DIR", str(tmp_path))
    environ = {**horovod(1), "TFTRACER_HUB": "node1:1234"}
    (target,) = make_plan(detect_launcher(environ, {}), environ, shared_token=True).targets()
    assert (target.host, target.port, target.any_job) == ("node1", 1234, True)
    assert make_plan(no_launcher(), environ, "other:1").targets()[0].host == "other"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node1:1234", ("node1", 1234, "", False, "")),
        ("node1", ("node1", 9999, "", False, "")),
        ("[::1]:7", ("::1", 7, "", False, "")),
        ("https://h:1/prefix/?token=abc", ("h", 1, "abc", True, "/prefix")),
        ("http://127.0.0.1:9999/", ("127.0.0.1", 9999, "", False, "")),
    ],
)
def test_a_hub_by_host_and_port_or_url(text: str, expected: tuple[object, ...]) -> None:
    target = parse_target(text)
    assert (target.host, target.port, target.token, target.secure, target.path) == expected


@pytest.mark.parametrize("text", ["no host", "a:b", "host:0", "host:99999", "ftp://h:1", "a@b:1"])
def test_a_hub_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        parse_target(text)


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("node1", "node1"),
        ("node[01-03,7],gpu5", "node01"),
        ("gpu5,node[01-03,7]", "gpu5"),
        ("a[1-2]-ib,b", "a1-ib"),
        ("", ""),
        ("n[x]", ""),
        ("n[²]", ""),
        ("n[٣-٤]", ""),
        (f"n[{'1' * 5000}]", ""),
    ],
)
def test_the_first_of_slurms_nodes(text: str, node: str) -> None:
    assert first_node(text) == node


# -------------------------------------------------------------------------------------------------------------- the file

HUB = Target("127.0.0.1", 9999, "secret")


def test_word_is_left_for_the_users_eyes_alone_and_taken_back(tmp_path: Path) -> None:
    path = publish_hub("job", HUB, tmp_path / "hubs")
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    entry = read_hub("job", tmp_path / "hubs")
    assert entry is not None and (entry.host, entry.port, entry.token, entry.source) == ("127.0.0.1", 9999, "secret", "file")
    assert read_hub("another", tmp_path / "hubs") is None
    withdraw_hub("job", 1234, tmp_path / "hubs")
    assert path.exists()
    withdraw_hub("job", 9999, tmp_path / "hubs")
    assert not path.exists() and read_hub("job", tmp_path / "hubs") is None


def test_what_others_may_read_or_have_made_is_not_trusted(tmp_path: Path) -> None:
    folder = tmp_path / "hubs"
    path = publish_hub("job", HUB, folder)
    path.chmod(0o644)
    assert read_hub("job", folder) is None
    path.chmod(0o600)
    folder.chmod(0o777)
    assert read_hub("job", folder) is None
    with pytest.raises(StorageError):
        publish_hub("job", HUB, folder)


def test_a_link_in_the_files_place_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "hubs"
    real = publish_hub("job", HUB, tmp_path / "elsewhere")
    folder.mkdir(mode=0o700)
    hub_file("job", folder).symlink_to(real)
    assert read_hub("job", folder) is None


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b'{"job": "job"}', b'{"job": "job", "host": 7, "port": 1, "token": "", "path": ""}', b"\xff"]
)
def test_a_file_that_makes_no_sense_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    path = publish_hub("job", HUB, tmp_path / "hubs")
    path.write_bytes(content)
    assert read_hub("job", tmp_path / "hubs") is None


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="TFTRACER_HUB"):
        publish_hub("job", HUB, tmp_path / "file" / "hubs")
