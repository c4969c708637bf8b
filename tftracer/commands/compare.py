"""``tftracer compare A... -- B...``: compares sessions before and after a change. With rules, it is a gate for CI."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tftracer.errors import UsageError
from tftracer.storage.whole_file import writing
from tftracer.subcommand_parser import Parser
from tftracer.terminal import GREEN, RED, YELLOW, Say, coloured, printable, progress

EXIT_CODES = {"PASS": 0, "FAIL": 4, "INCONCLUSIVE": 5}
COLOURS = {"PASS": GREEN, "FAIL": RED, "INCONCLUSIVE": YELLOW}
SUMMARY = "compares sessions before and after a change; with rules, it is a gate for CI"


def parser() -> Parser:
    from tftracer.comparison.gate import HELP

    syntax = Parser(
        "tftracer compare",
        usage="tftracer compare [options] BEFORE... -- AFTER...",
        description="Compares sessions before and after a change: step times with a 95% interval, and the ops that differ "
        "by more than chance explains. Record several sessions of each version, alternately (before, after, "
        "before, ...), because even sessions of the same code differ.",
        epilog="exit codes: 0 all rules pass, or none was given; 4 a rule fails; 5 a rule is inconclusive and none fails; "
        "1 a file cannot be opened, or the sessions have no such run; 2 wrong usage: an option or a rule is wrong, a rule names "
        "an op that no trace has, a session is given twice, or -- or the sessions beside it are missing; 130 ended by Ctrl-C",
    )
    syntax.add_argument("files", nargs="+", metavar="FILE", help="any file that tftracer opens, or the URL of a live page")
    syntax.add_argument("--run", help="title of the run to compare (default: the run that took the most time)")
    syntax.add_argument("--by", choices=["name", "type", "scope"], default="name", help="how ops are grouped (default: name)")
    syntax.add_argument(
        "--fail-if", action="append", default=[], metavar="RULE", help=f"{HELP.replace('%', '%%')}; may be given several times"
    )
    syntax.add_argument(
        "--allow-undecided",
        action="store_true",
        help="exit with 0 although a rule is INCONCLUSIVE, for example because there is one session a side; still exit with 5 if "
        "what a rule needs is not in the sessions, such as traces, and with 4 if a rule fails",
    )
    syntax.add_argument("--json", action="store_true", help="print JSON")
    syntax.add_argument("--junit", metavar="FILE", help="write the rules' outcomes as JUnit XML")
    return syntax


def main(arguments: Sequence[str], say: Say) -> int:
    """Return the exit code."""
    from tftracer.comparison import report
    from tftracer.comparison.gate import judge, parse_rule, worst
    from tftracer.scripting.compare import compare_sessions
    from tftracer.scripting.session import open as open_session

    before, after = _sides(list(arguments))
    options = parser().parse_intermixed_args(before)
    rules = [parse_rule(rule) for rule in options.fail_if]
    with progress(f"Reading {len(options.files) + len(after)} sessions"), ExitStack() as opened:
        sessions = [[opened.enter_context(open_session(file)) for file in files] for files in (options.files, after)]
        comparison = compare_sessions(sessions[0], sessions[1], options.run, options.by)
    outcomes = judge(comparison, rules)
    if options.junit:
        with writing(options.junit):
            Path(options.junit).write_text(report.as_junit(outcomes), encoding="utf-8")
    as_json = json.dumps(report.as_json(comparison, outcomes), indent=1) if options.json else ""
    say(as_json or _with_colours(printable(report.as_text(comparison, outcomes))), is_safe=True)
    if options.allow_undecided:
        outcomes = [outcome for outcome in outcomes if outcome.state == "FAIL" or outcome.lacks_data]
    return EXIT_CODES[worst(outcomes)]


def _with_colours(answer: str) -> str:
    states = re.compile(rf"^({'|'.join(COLOURS)})\b", re.MULTILINE)
    return states.sub(lambda state: coloured(state[1], COLOURS[state[1]], sys.stdout), answer)


def _sides(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split the arguments into those before ``--`` and those after it. Raises UsageError if one side is missing."""
    if "--" not in arguments:
        if {"-h", "--help"} & set(arguments):
            return arguments, []
        raise UsageError("Give the sessions before and after the change: tftracer compare BEFORE... -- AFTER...")
    separator = arguments.index("--")
    after = arguments[separator + 1 :]
    if not after or any(file.startswith("-") for file in after):
        raise UsageError("After --, give the sessions after the change, and nothing else. Options go before the first session.")
    return arguments[:separator], after
