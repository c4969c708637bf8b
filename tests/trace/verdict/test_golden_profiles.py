"""The sentences about every profile in the repository, as they were read once and found true.

``python tests/trace/verdict/test_golden_profiles.py`` writes them anew; read every line of the difference before you commit it.
"""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

from tftracer.trace.answers import Answers
from tftracer.trace.decode.profile_cut import steps
from tftracer.trace.model import TraceContext

DATA = Path(__file__).parents[2] / "data"
GOLDEN = DATA / "golden" / "profile_sentences.txt"
MAX_STEPS = 3  # of each profile


def content(path: Path) -> bytes:
    data = path.read_bytes()
    return {".gz": gzip.decompress, ".xz": lzma.decompress}.get(path.suffix, bytes)(data)


def sentences() -> str:
    lines: list[str] = []
    for path in sorted((DATA / "xspace").glob("*.xplane.pb*")):
        for number, (_, raw) in enumerate(list(steps(content(path)))[:MAX_STEPS]):
            lines += [f"{path.name} {number + 1}"]
            lines += [f"    {s['code']}: {s['text']}" for s in Answers(raw, TraceContext()).verdict()["sentences"]]
    return "\n".join(lines) + "\n"


def test_what_the_verdict_says_of_real_profiles() -> None:
    assert sentences() == GOLDEN.read_text(encoding="utf-8")


if __name__ == "__main__":
    GOLDEN.write_text(sentences(), encoding="utf-8")
