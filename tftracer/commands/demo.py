"""``tftracer demo``: opens a small session that is included in tftracer: a real training with slow steps and traces."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tftracer import viewer
from tftracer.storage.whole_file import writing
from tftracer.subcommand_parser import Parser

SUMMARY = "opens a sample session of a training with slow steps"
SAMPLE = Path(__file__).parents[1] / "samples" / "training.tftrace"


def parser() -> Parser:
    syntax = Parser(
        "tftracer demo",
        description="Opens a session of a small convolutional network in the browser: 900 steps, four of them traced. On every "
        "60th step it saves a checkpoint, which takes long (examples/slow_checkpoints.py). TensorFlow is not needed.",
    )
    viewer.add_page_options(syntax)
    syntax.add_argument(
        "--save", metavar="FILE", help="write the session to this file instead of opening it, to try other commands on it"
    )
    return syntax


def main(arguments: Sequence[str], say: Callable[[str], None]) -> int:
    from tftracer.session.files.saved import open_session

    options = parser().parse_args(arguments)
    if options.save:
        with writing(options.save):
            shutil.copyfile(SAMPLE, options.save)
        say(f"The sample session is in {options.save}. Try: tftracer {options.save} --summary")
        return 0
    return viewer.serve(open_session(SAMPLE), str(SAMPLE), options)
