"""Reads profiles of TensorFlow's or JAX's profiler (``.xplane.pb``): one file, or the newest profile in a folder of logs."""

from __future__ import annotations

from pathlib import Path

from tftracer.errors import FormatError
from tftracer.importers.cut_imports import check_end
from tftracer.importers.imported import Imported, ImportedRun, ImportedTrace
from tftracer.trace.decode.profile_cut import steps
from tftracer.trace.decode.protobuf_kinds import XSPACE

#: Folders of profiles below the log folder of TensorBoard's callback and of jax.profiler.
_PROFILES = ("plugins/profile/*", "*/plugins/profile/*", "*")


def newest_profile(folder: Path) -> list[Path]:
    """Return the files of the newest profile below a folder of logs, one per host. Raises FormatError if there is none."""
    folders = [folder, *(profile_folder for pattern in _PROFILES for profile_folder in folder.glob(pattern))]
    profiles = [files for profile_folder in folders if (files := sorted(profile_folder.glob("*.xplane.pb")))]
    if not profiles:
        raise FormatError(
            f"{str(folder)!r} is a folder without a profile: no .xplane.pb in it, nor in plugins/profile/*/ below it"
        )
    return max(profiles, key=lambda files: max(path.stat().st_mtime for path in files))


def host_of(file: Path) -> str:
    """Return the name of the host, which is in the name of a profile's file."""
    return file.name.removesuffix(".xplane.pb")


def read(raw: bytes, host: str = "") -> Imported:
    """Read the steps of one profile, each as a trace. ``host``: prefix of the titles, used if a profile has several hosts.

    Raises FormatError for invalid bytes, TruncatedError if the end is missing.
    """
    check_end(raw, XSPACE)
    runs: dict[str, ImportedRun] = {}
    for step, part in steps(raw):
        title = f"{host}: {step.title}" if host else step.title
        run = runs.setdefault(title, ImportedRun(title))
        run.steps += step.line >= 0  # line -1: the profile marks no steps, so their number is not known
        run.traces.append(ImportedTrace(part, title, step.number, None, step.duration_s))
    return Imported("profile", list(runs.values()))
