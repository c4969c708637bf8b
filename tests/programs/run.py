"""Programs of twelve libraries that no one here wrote, with ``tftracer run`` and without: ``make test-programs``.

    python tests/programs/run.py 215|221 [--runs N] [--only NAME]

Each runs N times in either way. The output and the exit code must be the same each time, and the sessions must hold every step.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tftracer.session.files.saved import open_session

SCRIPTS = Path(__file__).with_name("scripts")
LONGEST_S = 1200
#: What a library says that it took.
TIMES = re.compile(r"took [0-9.]+ s")


@dataclass(frozen=True)
class Program:
    """steps: of the runs whose titles begin so, in all processes together."""

    steps: dict[str, int]
    script: str = ""
    variables: dict[str, str] = field(default_factory=dict)


#: By the release of TensorFlow.
PROGRAMS = {
    "215": {
        "deepxde_sessions": Program({"": 309}, "deepxde_poisson", {"DDE_BACKEND": "tensorflow.compat.v1"}),
        "deepxde_functions": Program({"": 308}, "deepxde_poisson", {"DDE_BACKEND": "tensorflow"}),
        "gpflow_regression": Program({"step": 60}),
        "deepctr_clicks": Program({"fit": 60, "predict": 2}),
        "recommenders_retrieval": Program({"fit": 20, "evaluate": 10}),
        "keras_tuner_search": Program({"fit": 120, "evaluate": 24}),
        "probability_sampling": Program({"chain": 5}),
    },
    "221": {
        "mlflow_autolog": Program({"fit": 30}),
        "tensorboard_profile": Program({"fit": 20}),
        "wandb_offline": Program({"fit": 30}),
        "scikeras_processes": Program({"fit": 60}),
        "optuna_study": Program({"fit": 100}),
        "keras_tuner_search": Program({"fit": 120, "evaluate": 24}),
    },
}


def outcome(command: list[str], program: Program, folder: Path) -> tuple[int, str, str]:
    """Exit code, output and what it said on stderr."""
    temporary = folder / "temporary"
    temporary.mkdir(parents=True)
    own = {"TMPDIR": str(temporary), "TFTRACER_SPOOL_DIR": str(folder / "spool"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "0", **own, **program.variables}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    return done.returncode, TIMES.sub("took a time", done.stdout), done.stderr


def recorded(folder: Path) -> tuple[Counter[str], int]:
    """Steps by their run's title, in all processes, and how many traces there are."""
    steps: Counter[str] = Counter()
    traces = 0
    for path in folder.glob("*.tftrace"):
        for run in open_session(str(path)).runs():
            traces += len(run["traces"])
            steps[run["title"]] += run["steps"]
    return steps, traces


def tried(name: str, program: Program, runs: int) -> str:
    """What went wrong, or ""."""
    script = str(SCRIPTS / f"{program.script or name}.py")
    expected: tuple[int, str] | None = None
    traces = 0
    for number in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            *plain, errors = outcome([sys.executable, script], program, Path(folder, "plain"))
            expected = expected or (plain[0], plain[1])
            if (plain[0], plain[1]) != expected or not plain[1]:
                return f"differs by itself: {expected}, {plain}\n{errors[-3000:]}"
            options = ["-m", "tftracer", "run", "--port", "0", "--trace", "2", "--from", "3"]
            *traced, errors = outcome([sys.executable, *options, script], program, Path(folder, "traced"))
            if (traced[0], traced[1]) != expected:
                return f"run {number + 1}: {expected} became {traced}\n{errors[-3000:]}"
            steps, found = recorded(Path(folder, "traced", "spool"))
            traces += found
            for title, count in program.steps.items():
                if count != sum(steps[run] for run in steps if run.startswith(title)):
                    return f"run {number + 1}: the session has {steps}, not {program.steps}\n{errors[-3000:]}"
    print(f"{name}: {runs} runs with tftracer and {runs} without agree, every step is recorded, {traces} traces", flush=True)
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("release", choices=PROGRAMS)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--only")
    options = parser.parse_args()
    wrong = 0
    for name, program in PROGRAMS[options.release].items():
        if options.only in (None, name) and (problem := tried(name, program, options.runs)):
            print(f"{name}: {problem}", flush=True)
            wrong += 1
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
