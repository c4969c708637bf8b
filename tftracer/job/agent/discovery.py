"""Finds a job's hub and name. Pure, except for one file in a folder of the user.

The hub is the page of rank 0 or of the chief. A process looks for it in this order: at the address that the user gives (``hub=``
or ``TFTRACER_HUB``), in a file on this host that rank 0 wrote, on the first host of ``TF_CONFIG``, of SLURM's node list, or of
Horovod's launcher. The file holds the hub's token, and a given URL may hold it; otherwise the processes must share
``TFTRACER_TOKEN``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import ssl
import stat
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tftracer.contract.session import LauncherInfo
from tftracer.errors import StorageError
from tftracer.session.process.launcher import CHIEFS, Environment, is_chief, tf_config
from tftracer.storage.plain_files import open_own
from tftracer.storage.whole_file import replacing, writing
from tftracer.web.credentials import WILDCARDS
from tftracer.web.ports import netloc

#: The default port of a hub, and the number of ports to try from it on: if a port is in use, the hub takes the next free one.
PORT = 9999
PORTS = 4
MAX_FILE = 1 << 16


@dataclass(frozen=True)
class OwnPage:
    """Address and token of this process's web server."""

    ip: str  # the address that the server listens on
    port: int
    secure: bool
    path: str
    token: str

    @property
    def host(self) -> str:
        """The host to connect to from this process."""
        return "127.0.0.1" if self.ip in WILDCARDS else self.ip

    @property
    def address(self) -> str:
        """``host:port`` as in a URL."""
        return netloc(self.host, self.port)

    def target(self, token: str) -> Target:
        """Return this page as the target of the agent in the hub's own process."""
        return Target(self.host, self.port, token, self.secure, self.path, "own")

    def tls_context(self) -> ssl.SSLContext | None:
        """Return a context that verifies nothing, because the server is this process itself; None without TLS."""
        return unverified() if self.secure else None


def unverified() -> ssl.SSLContext:
    """Make a TLS context that verifies nothing, for servers of this user on this host."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@dataclass(frozen=True)
class Target:
    """An address at which the hub may be. An empty ``token`` means the process's own token, which the hub must have, too."""

    host: str
    port: int
    token: str = ""
    secure: bool = False
    path: str = ""
    source: str = ""  # where the address comes from: "own", "given", "file", "TF_CONFIG", ...
    any_job: bool = False  # the user named this hub, so its job may have any name


@dataclass(frozen=True)
class Plan:
    """A process's role in its job: whether its own page is the hub, and where it looks for the hub."""

    job: str
    is_hub: bool
    given: tuple[Target, ...]  # targets from the user; if there are any, only these are tried
    guessed: tuple[Target, ...]  # targets from the launcher's environment
    shared_token: bool  # the user set the process's token, so the hub may have the same one

    @property
    def has_no_job(self) -> bool:
        return not self.is_hub and not self.given and not self.guessed and not self.job

    def targets(self) -> list[Target]:
        """Return the targets to try now, the most likely first. Reads the file on this host each time."""
        if self.given:
            return list(self.given)
        published = read_hub(self.job)
        targets = [published] if published else []
        return targets + (list(self.guessed) if self.shared_token else [])


def make_plan(place: LauncherInfo, environ: Environment, hub: str = "", shared_token: bool = False) -> Plan:
    """Make the plan from the launcher and the environment. Raises ValueError if the given hub is neither host:port nor a URL."""
    given = hub or environ.get("TFTRACER_HUB", "")
    targets = (parse_target(given),) if given.strip() else ()
    job = job_name(place, environ, one_host=not targets)
    in_a_job = bool(job) and place["size"] != 1
    is_hub = is_chief(place) and in_a_job and not targets
    return Plan(job if in_a_job else "", is_hub, targets, tuple(_guesses(environ)) if in_a_job else (), shared_token)


def parse_target(text: str) -> Target:
    """Parse ``host:port`` or the URL of the hub's page; a token in the URL is used."""
    match = re.fullmatch(
        r"(?:(https?)://)?(\[[0-9A-Fa-f:.]+\]|[^\s/:@?#\[\]]+)(?::(\d{1,5}))?(/[^\s?#]*)?(?:\?token=(\S+))?", text.strip()
    )
    if match is None or not 0 < int(match[3] or PORT) < 65536:
        raise ValueError(f"The hub {text!r} is neither host:port nor the URL of a page; give, say, node1:9999.")
    path = (match[4] or "").rstrip("/")
    host = match[2].strip("[]")
    return Target(host, int(match[3] or PORT), match[5] or "", match[1] == "https", path, "given", any_job=True)


#: Variables with the same values in all processes of a job, and different values in two jobs on one host.
JOB_VARIABLES = (
    ("HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"),
    ("PMIX_NAMESPACE",),
    ("OMPI_MCA_ess_base_jobid",),
    ("OMPI_MCA_orte_hnp_uri",),
    ("PMI_JOBID",),
    ("PMI_KVS",),
    ("I_MPI_HYDRA_UUID",),
    ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ("SLURM_JOBID", "SLURM_STEPID"),
)


def job_name(place: LauncherInfo, environ: Environment, one_host: bool = True) -> str:
    """Return the job's name, the same in all of its processes; "" for a process without a job.

    ``one_host``: whether all processes may be on one host: then the id of their common parent may name the job.
    """
    if environ.get("TFTRACER_JOB", "").strip():
        return environ["TFTRACER_JOB"].strip()[:200]
    if place["launcher"] == "tf_config":
        cluster = json.dumps(tf_config(environ)[0], sort_keys=True)
        return f"tf_config-{_digest(cluster)}"
    if place["rank"] is None:
        return ""
    for names in JOB_VARIABLES:
        values = [environ.get(name, "") for name in names]
        if values[0]:
            return f"{place['launcher']}-{_digest(' '.join([*names, *values]))}"
    if place["launcher"] == "mpich":  # Hydra sets no job id, but one parent starts all ranks of a host
        return f"mpich-{_digest(f'{socket.gethostname()} {os.getppid()}')}" if one_host else ""
    return f"{place['launcher']}-{place['size'] or 0}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _guesses(environ: Environment) -> list[Target]:
    """Return the addresses at which the job's first process may be."""
    cluster = tf_config(environ)[0]
    chiefs = [address for name in (*CHIEFS, "worker") for address in cluster.get(name, [])][:1]
    hosts = [(re.sub(r":\d+$", "", address), "TF_CONFIG") for address in chiefs]
    hosts.append((first_node(environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_JOB_NODELIST") or ""), "SLURM"))
    hosts.append((environ.get("HOROVOD_GLOO_RENDEZVOUS_ADDR", ""), "Horovod"))
    return [Target(host.strip("[]"), PORT + i, source=source) for host, source in hosts if host for i in range(PORTS)]


def first_node(text: str) -> str:
    """Return the first name in SLURM's ``node[01-03,7],gpu5``, here ``node01``; "" if the text is no such list."""
    match = re.match(r"\s*([^,\[\]\s]+)(?:\[([0-9]{1,9})(?:[,-][0-9,-]*)?\]([^,\[\]\s]*))?(?=[,\s]|$)", text)
    return "".join(match.groups("")) if match else ""


def hub_file(job: str, folder: Path | None = None) -> Path:
    return (folder or hub_folder()) / f"hub-{_digest(job)}.json"


def hub_folder() -> Path:
    """Return this user's folder for hub files on this host. It is not in the home folder, which other hosts may share."""
    return Path(os.environ.get("TFTRACER_HUB_DIR") or Path(tempfile.gettempdir()) / f"tftracer-hub-{os.getuid()}")


def publish_hub(job: str, target: Target, folder: Path | None = None) -> Path:
    """Write the file by which the job's other processes on this host find the hub. Private to the user. Raises StorageError."""
    path = hub_file(job, folder)
    remedy = ", so the job's other processes do not find this page. Set TFTRACER_HUB and TFTRACER_TOKEN for all of them."
    with writing(path, remedy):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_own(path.parent)
        with replacing(path, lasting=False) as file:
            file.write(json.dumps({"job": job, **asdict(target)}).encode())
    return path


def read_hub(job: str, folder: Path | None = None) -> Target | None:
    """Read the file that the hub of this job wrote; None if there is none, or if another user may have written it."""
    path = hub_file(job, folder)
    try:
        _check_own(path.parent)
        _check_own(path)
        with os.fdopen(open_own(path), "rb") as file:
            content = json.loads(file.read(MAX_FILE)) if job else None
        return _target(content, job)
    except (OSError, ValueError, StorageError):
        return None


def withdraw_hub(job: str, port: int, folder: Path | None = None) -> None:
    """Remove the job's hub file on this host if it names this hub's port."""
    published = read_hub(job, folder)
    if published is not None and published.port == port:
        with contextlib.suppress(OSError):
            hub_file(job, folder).unlink()


def _target(content: Any, job: str) -> Target | None:
    if not isinstance(content, dict) or content.get("job") != job:
        return None
    host, port, token, path = (content.get(key) for key in ("host", "port", "token", "path"))
    if not (isinstance(host, str) and isinstance(port, int) and isinstance(token, str) and isinstance(path, str)):
        return None
    return Target(host, port, token, content.get("secure") is True, path, "file") if 0 < port < 65536 else None


def _check_own(path: Path) -> None:
    """Raise StorageError if the path is a link, belongs to another user, or if other users have access to it."""
    status = path.lstat()
    if status.st_uid != os.getuid() or stat.S_ISLNK(status.st_mode) or status.st_mode & 0o077:
        raise StorageError(f"{path}: belongs to another user, or others may read it. Remove it.")
