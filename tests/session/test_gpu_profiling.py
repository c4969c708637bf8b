"""What a process finds out about its GPU profiling, on machines made of files: no driver, no libcupti, no permission."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tftracer.session.process.gpu_profiling import gpu_facts
from tftracer.storage import untrusted

LINE = "7f12a4000000-7f12a4200000 r-xp 00000000 08:01 1835 "
CUDA = SimpleNamespace(build_info={"is_cuda_build": True, "is_rocm_build": False, "cuda_version": "12.2"})


def machine(
    folder: Path, loaded: tuple[str, ...] = (), params: str | None = "RmProfilingAdminOnly: 0\n", capabilities: int = 0
) -> Path:
    """A /proc with the libraries that are loaded, and the driver's files if it has ``params``."""
    proc = folder / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "self/maps").write_text("".join(f"{LINE}{' ' * 20}{path}\n" for path in ("/lib/libc.so.6", *loaded)))
    (proc / "self/status").write_text(f"Name:\tpython\nCapEff:\t{capabilities:016x}\n")
    if params is not None:
        (proc / "driver/nvidia").mkdir(parents=True)
        (proc / "driver/nvidia/version").write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03\n")
        (proc / "driver/nvidia/params").write_text(f"ModifyDeviceFiles: 1\n{params}")
    return proc


def facts_of(proc: Path, build: Any = CUDA, environ: dict[str, str] | None = None, folders: tuple[str, ...] = ()) -> Any:
    modules = {"tensorflow.python.platform.build_info": build} if build else {}
    return gpu_facts(proc, modules, environ or {}, folders)


def test_a_machine_without_a_driver(tmp_path: Path) -> None:
    facts = facts_of(machine(tmp_path, params=None))
    assert facts == {"build": "cuda", "cuda_version": "12.2", "driver": False, "libcupti_loaded": "", "libcupti_file": ""}


def test_a_driver_that_is_seen_by_its_library_alone(tmp_path: Path) -> None:
    """As in WSL, which has no /proc/driver."""
    assert facts_of(machine(tmp_path, ("/usr/lib/wsl/lib/libcuda.so.1",), params=None))["driver"] is True


def test_libcupti_that_is_loaded(tmp_path: Path) -> None:
    facts = facts_of(machine(tmp_path, ("/usr/local/cuda/lib64/libcupti.so.12", "/lib/libcuda.so.1")))
    assert facts["libcupti_loaded"] == "/usr/local/cuda/lib64/libcupti.so.12" and "libcupti_file" not in facts


@pytest.mark.parametrize("where", ["LD_LIBRARY_PATH", "cuda"])
def test_libcupti_that_is_there_and_not_loaded(where: str, tmp_path: Path) -> None:
    library = tmp_path / "lib64" / "libcupti.so.12"
    library.parent.mkdir()
    library.touch()
    environ = {"LD_LIBRARY_PATH": f"/nowhere::{library.parent}"} if where == "LD_LIBRARY_PATH" else {}
    folders = (str(library.parent),) if where == "cuda" else ()
    facts = facts_of(machine(tmp_path), environ=environ, folders=folders)
    assert facts["libcupti_loaded"] == "" and facts["libcupti_file"] == str(library)


def test_libcupti_of_another_cuda_is_none(tmp_path: Path) -> None:
    (tmp_path / "libcupti.so.13").touch()
    (tmp_path / "libcupti.so").symlink_to("libcupti.so.13")
    assert facts_of(machine(tmp_path), folders=(str(tmp_path),))["libcupti_file"] == ""


@pytest.mark.parametrize(
    ("params", "capabilities", "restricted"),
    [
        ("RmProfilingAdminOnly: 0\n", 0, False),
        ("RmProfilingAdminOnly: 1\n", 0, True),
        ("RmProfilingAdminOnly: 1\n", 1 << 21, False),
        ("RmProfilingAdminOnly: 1\n", 1 << 38, False),
        (None, 0, None),
    ],
)
def test_permission_to_profile(params: str | None, capabilities: int, restricted: bool | None, tmp_path: Path) -> None:
    assert facts_of(machine(tmp_path, params=params, capabilities=capabilities)).get("restricted") is restricted


@pytest.mark.parametrize(
    ("info", "build"),
    [
        ({"is_cuda_build": True, "is_rocm_build": False}, "cuda"),
        ({"is_cuda_build": False, "is_rocm_build": True}, "rocm"),
        ({"is_cuda_build": False, "is_rocm_build": False}, "cpu"),
    ],
)
def test_what_tensorflow_was_built_for(info: dict[str, bool], build: str, tmp_path: Path) -> None:
    facts = facts_of(machine(tmp_path), SimpleNamespace(build_info=info))
    assert facts["build"] == build and ("libcupti_file" in facts) == (build == "cuda")  # nobody else needs it


def test_what_cannot_be_found_out_is_left_out(tmp_path: Path) -> None:
    assert facts_of(tmp_path / "no proc", build=None, environ={"CUDA_VISIBLE_DEVICES": "-1"}) == {"visible_devices": "-1"}


def test_this_process_is_not_made_to_import_anything() -> None:
    before = set(sys.modules)
    facts = gpu_facts()
    assert set(sys.modules) == before and facts.get("libcupti_loaded", "") == ""


def test_facts_out_of_a_file_are_checked(tmp_path: Path) -> None:
    facts = facts_of(machine(tmp_path))
    assert untrusted.gpu_facts(facts) == facts
    assert untrusted.gpu_facts({"build": "other", "driver": 1, "libcupti_loaded": 7, "more": "x"}) == {}
