"""Each launcher's environment, as the launcher writes it, and what is left when it makes no sense."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from tftracer.session.process.launcher import detect_launcher, is_chief, no_launcher, process_title, tf_config

CLUSTER = {"chief": ["a:2222"], "worker": ["b:2222", "c:2222"], "ps": ["d:2222"]}


def tf(role: str, index: int, cluster: object = CLUSTER) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})}


def numbers(environ: dict[str, str]) -> tuple[object, ...]:
    place = detect_launcher(environ, {})
    return place["launcher"], place["rank"], place["size"], place["local_rank"]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"HOROVOD_RANK": "5", "HOROVOD_SIZE": "8", "HOROVOD_LOCAL_RANK": "1"}, ("horovod", 5, 8, 1)),
        (
            {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0"},
            ("openmpi", 2, 4, 0),
        ),
        ({"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1"}, ("mpich", 3, 4, 1)),
        ({"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2"}, ("mpich", 1, 2, None)),
        ({"SLURM_PROCID": "7", "SLURM_NTASKS": "16", "SLURM_LOCALID": "3"}, ("slurm", 7, 16, 3)),
        ({"PMIX_RANK": "4"}, ("pmix", 4, None, None)),
        ({"PMIX_RANK": "4", "SLURM_PROCID": "4", "SLURM_NTASKS": "8", "SLURM_LOCALID": "0"}, ("pmix", 4, 8, 0)),
        ({"PMI_RANK": "4", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, ("mpich", 4, None, None)),
        ({}, ("", None, None, None)),
        ({"SLURM_PROCID": "seven"}, ("", None, None, None)),
        ({"HOROVOD_RANK": "-1"}, ("", None, None, None)),
    ],
)
def test_the_launchers_variables(environ: dict[str, str], expected: tuple[object, ...]) -> None:
    assert numbers(environ) == expected


def test_horovod_under_slurm_is_horovod() -> None:
    environ = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "HOROVOD_RANK": "1", "HOROVOD_SIZE": "2"}
    assert numbers(environ) == ("horovod", 1, 2, None)


@pytest.mark.parametrize(
    ("role", "index", "rank", "title"),
    [("chief", 0, 0, "chief/0"), ("worker", 1, 2, "worker/1"), ("ps", 0, None, "ps/0"), ("evaluator", 0, None, "evaluator/0")],
)
def test_tf_config_names_role_and_rank(role: str, index: int, rank: int | None, title: str) -> None:
    place = detect_launcher(tf(role, index), {})
    assert (place["role"], place["task"], place["rank"], place["size"]) == (role, index, rank, 3)
    assert process_title(place, 1) == title
    assert is_chief(place) == (role == "chief")


def test_without_a_chief_the_first_worker_leads() -> None:
    assert is_chief(detect_launcher(tf("worker", 0, {"worker": ["b:1", "c:1"], "ps": ["d:1"]}), {}))


def test_tf_config_under_slurm_takes_the_local_rank_from_slurm() -> None:
    place = detect_launcher({**tf("worker", 1), "SLURM_PROCID": "5", "SLURM_LOCALID": "2"}, {})
    assert (place["launcher"], place["rank"], place["local_rank"]) == ("tf_config", 2, 2)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"task": 3}', '{"task": {"type": "worker", "index": "x"}}', "null"])
def test_a_tf_config_without_sense_is_as_good_as_none(text: str) -> None:
    assert tf_config({"TF_CONFIG": text}) == ({}, "", 0)
    assert detect_launcher({"TF_CONFIG": text}, {}) == no_launcher()


def test_a_sparse_cluster_is_a_mapping() -> None:
    assert tf_config(tf("ps", 0, {"ps": {"0": "d:1"}}))[0] == {"ps": ["d:1"]}


def test_an_initialised_horovod_knows_best() -> None:
    horovod = SimpleNamespace(is_initialized=lambda: True, rank=lambda: 1, size=lambda: 2, local_rank=lambda: 1)
    place = detect_launcher({"HOROVOD_RANK": "0", "HOROVOD_SIZE": "4"}, {"horovod.tensorflow": horovod})
    assert (place["rank"], place["size"], place["local_rank"]) == (1, 2, 1)


def test_horovod_imported_but_not_initialised_is_not_asked() -> None:
    asked: list[str] = []
    horovod = SimpleNamespace(is_initialized=lambda: False, rank=lambda: asked.append("rank"))
    place = detect_launcher({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, {"horovod.tensorflow": horovod})
    assert (place["launcher"], place["rank"], asked) == ("openmpi", 1, [])


def test_a_process_without_a_launcher_is_named_by_its_process_id() -> None:
    assert process_title(no_launcher(), 77) == "process 77"
    assert process_title(detect_launcher({"HOROVOD_RANK": "3"}, {}), 77) == "rank 3"
