"""Finds this process's rank, the number of ranks, its local rank and its role, from the launcher of its job.

It reads the environment and, once Horovod is initialized, Horovod's local getters. It never makes a collective call: a script in
which only one rank has the hook would hang. It imports neither Horovod nor MPI.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tftracer.contract.session import LauncherInfo

Environment = Mapping[str, str]

#: launcher -> the variables that hold the rank, the size and the local rank. Of several, the first one that is set counts.
VARIABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "horovod": (("HOROVOD_RANK",), ("HOROVOD_SIZE",), ("HOROVOD_LOCAL_RANK",)),
    "openmpi": (("OMPI_COMM_WORLD_RANK",), ("OMPI_COMM_WORLD_SIZE",), ("OMPI_COMM_WORLD_LOCAL_RANK",)),
    "mpich": (
        ("PMI_RANK", "MV2_COMM_WORLD_RANK"),
        ("PMI_SIZE", "MV2_COMM_WORLD_SIZE"),
        ("MPI_LOCALRANKID", "PMI_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK"),
    ),
    "pmix": (("PMIX_RANK",), (), ()),  # Open MPI and SLURM set the rest in variables of their own
    "slurm": (("SLURM_PROCID",), ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"), ("SLURM_LOCALID",)),
}
HOROVOD_MODULES = ("horovod.tensorflow", "horovod.tensorflow.keras", "horovod.keras", "horovod.torch")
#: A process whose task in ``TF_CONFIG`` has one of these types is the chief.
CHIEFS = ("chief", "master")


def no_launcher() -> LauncherInfo:
    """Return the facts of a process that was started without a launcher."""
    return _info("", None, None, None)


def detect_launcher(environ: Environment = os.environ, modules: Mapping[str, Any] = sys.modules) -> LauncherInfo:
    """Return the facts from the first known source: initialized Horovod, Horovod's variables, ``TF_CONFIG``, another launcher.

    Facts that this source lacks are taken from the variables of the other launchers. Invalid values (a rank that is not a number,
    a ``TF_CONFIG`` that is not JSON) are treated as missing.
    """
    info = _from_horovod(modules) or _from_variables("horovod", environ) or _from_tf_config(environ)
    for launcher in ("openmpi", "mpich", "pmix", "slurm"):
        variables = _from_variables(launcher, environ)
        if info is None:
            info = variables
        elif variables is not None:
            _fill_in(info, variables)
    return info or no_launcher()


def _fill_in(info: LauncherInfo, other: LauncherInfo) -> None:
    """Add missing facts from another launcher: PMIx under SLURM gives no size. A size counts only if both ranks agree."""
    if info["local_rank"] is None:
        info["local_rank"] = other["local_rank"]
    if info["size"] is None and info["rank"] == other["rank"]:
        info["size"] = other["size"]


def process_title(info: LauncherInfo, pid: int) -> str:
    """Return the name of a process on the page: ``rank 3``, ``ps/0``, ``worker/1``, else ``process`` and its id."""
    if info["launcher"] == "tf_config":
        return f"{info['role']}/{info['task']}"
    if info["rank"] is not None:
        return f"rank {info['rank']}"
    return f"process {pid}"


def file_of_process(path: str, info: LauncherInfo) -> str:
    """Return the file for this process. The chief's is ``path``; the other processes of the job get files next to it."""
    if not info["launcher"] or is_chief(info):
        return path
    title = re.sub("[ /]", "-", process_title(info, os.getpid()))
    return str(Path(path).with_stem(f"{Path(path).stem}-{title}"))


def is_chief(info: LauncherInfo) -> bool:
    """Return whether this process is rank 0 or the chief, whose page is the job's hub."""
    return info["rank"] == 0


def _from_horovod(modules: Mapping[str, Any]) -> LauncherInfo | None:
    """Ask Horovod, if it is imported and initialized. ``rank()`` and similar functions are local look-ups, not collectives."""
    for name in HOROVOD_MODULES:
        horovod = modules.get(name)
        try:
            if horovod is not None and horovod.is_initialized():
                return _info("horovod", int(horovod.rank()), int(horovod.size()), int(horovod.local_rank()))
        except Exception:  # half imported, or an unknown version: the environment is used
            continue
    return None


def _from_variables(launcher: str, environ: Environment) -> LauncherInfo | None:
    ranks, sizes, local_ranks = VARIABLES[launcher]
    rank = _number(environ, ranks)
    if rank is None:
        return None
    return _info(launcher, rank, _number(environ, sizes), _number(environ, local_ranks))


def _from_tf_config(environ: Environment) -> LauncherInfo | None:
    """Read ``TF_CONFIG``: the chief is rank 0, the workers follow; parameter servers and evaluators have no rank."""
    cluster, role, task = tf_config(environ)
    if not role:
        return None
    chiefs = sum(len(cluster.get(name, [])) for name in CHIEFS)
    size = chiefs + len(cluster.get("worker", []))
    rank = task if role in CHIEFS else chiefs + task if role == "worker" else None
    info = _info("tf_config", rank, size or None, None)
    info["role"], info["task"] = role, task
    return info


def tf_config(environ: Environment) -> tuple[dict[str, list[str]], str, int]:
    """Return cluster (job name -> addresses), role and task of ``TF_CONFIG``; ``({}, "", 0)`` if it is missing or invalid."""
    try:
        config = json.loads(environ.get("TF_CONFIG", "") or "{}")
        task = config.get("task") or {}
        role, index = str(task.get("type") or ""), int(task.get("index") or 0)
        cluster = {str(job): _addresses(addresses) for job, addresses in (config.get("cluster") or {}).items()}
    except (ValueError, TypeError, AttributeError):
        return {}, "", 0
    is_task = re.fullmatch(r"[A-Za-z_]\w{0,63}", role) and 0 <= index < 1 << 31
    return (cluster, role, index) if is_task and cluster else ({}, "", 0)


def _addresses(addresses: Any) -> list[str]:
    """Return a cluster's tasks as a list. TensorFlow also accepts a mapping of task numbers, for a sparse cluster."""
    values = addresses.values() if isinstance(addresses, dict) else addresses
    return [str(address) for address in values]


def _number(environ: Environment, names: tuple[str, ...]) -> int | None:
    for name in names:
        value = environ.get(name, "").strip()
        if value.isascii() and value.isdigit() and len(value) < 10:
            return int(value)
    return None


def _info(launcher: str, rank: int | None, size: int | None, local_rank: int | None) -> LauncherInfo:
    role = "worker" if rank is not None else ""
    return {"rank": rank, "size": size, "local_rank": local_rank, "role": role, "task": None, "launcher": launcher}
