"""Fuzzes every reader of strangers' bytes, guided by coverage: ``make fuzz``.

    python tests/fuzz/run.py [--scale 1.0] [--only NAME]

No input may crash a reader, keep it for longer than a second or take more than MEMORY_MB; nor may the questions that are then
asked about what it read (questions.py): one of eight, chosen by the input; a minute is allowed for them. Two readers are fuzzed
at a time. What breaks one is left in tests/out/fuzz; put it into tests/data/invalid, or odd if it can be read (as
NAME-what.bin), once it is fixed: the tests try it for ever.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
OUT = HERE.parent / "out" / "fuzz"
MEMORY_MB = 2048
#: Atheris keeps what its mutators return for as long as its process lives: a process tries as many inputs as take so much.
KEPT_MB = 512
#: More than a million in all; the slower a reader, the fewer.
INPUTS = {
    "run_metadata": 8_000,
    "profile": 3_000,
    "session": 5_000,
    "context": 4_000,
    "cost_graph": 3_000,
    "any_file": 30_000,
    "text": 20_000,
    "json": 150_000,
    "events": 300_000,
    "pickle": 500_000,
}


def fuzz(name: str, inputs: int, seeds: list[bytes]) -> tuple[int, str]:
    """How many inputs the reader took, and the fuzzer's words where one of them broke it."""
    begun = time.monotonic()
    corpus = OUT / name
    corpus.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(seeds):
        (corpus / f"seed-{i}").write_bytes(seed)
    at_once = max(200, (KEPT_MB << 20) // max(map(len, seeds)))
    count, broken = 0, ""
    while count < inputs and not broken:
        tried, broken = _in_process(name, min(at_once, inputs - count), seeds, corpus)
        count += tried
    what = "BROKEN" if broken else "none of which broke it"
    print(f"{name:>14}  {count:>9,} inputs in {(time.monotonic() - begun) / 60:.1f} min, {what}", flush=True)
    return count, broken


def _in_process(name: str, inputs: int, seeds: list[bytes], corpus: Path) -> tuple[int, str]:
    options = [
        f"-runs={inputs}",
        f"-max_len={max(8192, *(2 * len(seed) for seed in seeds))}",
        # Of the clock, for what never ends; a program that is stopped for a while must not count as one. target.py holds each
        # input to a second of the processor.
        "-timeout=1200",
        f"-rss_limit_mb={MEMORY_MB}",
        "-print_final_stats=1",
        f"-artifact_prefix={OUT}/{name}-",
    ]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent.parent)}
    done = subprocess.run(
        [sys.executable, str(HERE / "target.py"), name, *options, str(corpus)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    executed = re.search(r"number_of_executed_units:\s*(\d+)", done.stderr)
    broken = f"{done.stderr[-6000:]}\n{name}: broken by the input above, kept in {OUT}" if done.returncode else ""
    return int(executed.group(1)) if executed else inputs, broken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="times as many inputs")
    parser.add_argument("--only", choices=INPUTS, help="one reader")
    options = parser.parse_args()
    sys.path.insert(0, str(HERE.parent))
    from fuzz import targets

    names = [options.only] if options.only else list(INPUTS)
    with ThreadPoolExecutor(2) as readers:
        done = list(readers.map(lambda name: fuzz(name, max(1, int(INPUTS[name] * options.scale)), targets.seeds(name)), names))
    print(f"{'all':>14}  {sum(count for count, _ in done):>9,} inputs")
    sys.exit("\n".join(broken for _, broken in done if broken) or None)


if __name__ == "__main__":
    main()
