"""Patterns answer as Python's ``re`` does, and end, whoever wrote them."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tftracer.errors import PatternError
from tftracer.trace.arrays import linear_regex as pattern_module
from tftracer.trace.arrays.linear_regex import Pattern
from tftracer.trace.arrays.strings import StringTable

ATOMS = [
    "a",
    "b",
    "_",
    " ",
    ".",
    r"\w",
    r"\d",
    r"\s",
    r"\W",
    "[ab]",
    "[^ab]",
    "[a-c_]",
    r"[\d_]",
    r"[^\w]",
    "[]x]",
    r"\.",
    r"\x61",
    "ä",
]
ASSERTIONS = ["^", "$", r"\b", r"\B", r"\A", r"\Z"]
QUANTIFIERS = ["*", "+", "?", "*?", "{2}", "{1,2}", "{,2}", "{2,}"]


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = inner.map(lambda text: f"({text})")
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(group, st.sampled_from(QUANTIFIERS)).map("".join),
    )


PATTERNS = st.recursive(st.sampled_from([*ATOMS, *ASSERTIONS]), larger, max_leaves=8)
TEXTS = st.lists(st.text("ab_ .1cäÄ中", min_size=1, max_size=8), max_size=150)


@given(PATTERNS, TEXTS)
@example(r"\b", ["", "a"])
@example("", [""])
@example("(?i)Ä", ["ä", "a"])
def test_it_finds_what_re_finds(text: str, strings: list[str]) -> None:
    expected = re.compile(text)
    assert Pattern(text).search_all(StringTable.of(strings)).tolist() == [expected.search(one) is not None for one in strings]


def test_strings_of_all_lengths_are_read_to_their_ends() -> None:
    names = [f"{'x' * (i % 97)}/layer_{i}" for i in range(9000)] + ["x" * 70_000 + "/layer_3"]
    assert Pattern(r"x{3}/layer_\d*3$").search_all(StringTable.of(names)).tolist() == [
        re.search(r"x{3}/layer_\d*3$", name) is not None for name in names
    ]


@pytest.mark.parametrize(
    "text", ["(a+)+$", "(a|a)*b", "(.*a){20}$", "^((a*)*)*$", "(a|aa)+$", "^(.*.*.*=)*$", r"^(\w+\s?)*$", "(a?){40}a{40}$"]
)
def test_patterns_at_which_re_never_ends(text: str) -> None:
    """Quadratic time on the long string would be hours, exponential time on the short ones for ever."""
    strings = ["a" * 39 + "!", "a" * 1_000_000 + "!", *(f"{'a' * 30}{i}!" for i in range(10_000))]
    assert not Pattern(text).search_all(StringTable.of(strings)).any()


@pytest.mark.parametrize("text", ["(a|b)*a(a|b){14}$", "(a|b)*a(a|b){200}c"])
def test_a_pattern_of_too_many_states_is_refused_not_waited_for(text: str) -> None:
    chance = random.Random(1)
    strings = StringTable.of(["".join(chance.choices("ab", k=300)) for _ in range(5000)])
    with pytest.raises(PatternError, match="too complex"):
        Pattern(text).search_all(strings)


@pytest.mark.parametrize("text", ["|".join(f"{chr(code)}x" for code in range(0x4E00, 0x4F2C)), f"{'[acegikmo]' * 90}z"])
def test_many_distinct_characters_and_many_sets_are_bounded(text: str) -> None:
    every = StringTable.of(["".join(map(chr, range(0x4E00, 0x9FFF)))] * 2)
    assert Pattern("[一-三]鿾").search_all(every).tolist() == [False, False]
    with pytest.raises(PatternError, match="too complex"):
        Pattern(text).search_all(StringTable.of([*every, *(f"{'a' * 95}{char}" for char in every[0])]))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(", "missing"),
        (")", "unbalanced"),
        ("*a", "nothing to repeat"),
        ("a**", "multiple repeat"),
        ("a++", "possessive|multiple repeat"),
        ("^*", "nothing to repeat"),
        ("[a", "unterminated"),
        ("[b-a]", "bad character range"),
        ("a{2,1}", "min repeat"),
        ("\\", "bad escape"),
        (r"\y", "bad escape"),
        (r"\xz1", "incomplete escape"),
        (r"(a)\1", "back references"),
        ("(?=a)", "look-around"),
        ("(?<!a)b", "look-around"),
        ("a{1001}", "repeats of more than"),
        ("(a{100}){100}", "too large"),
        ("((((a{9}){9}){9}){9}){9}", "too large"),
        ("(" * 60 + ")" * 60, "deep"),
        ("a" * 1001, "too long"),
    ],
)
def test_what_is_no_pattern_or_not_supported_says_why(text: str, problem: str) -> None:
    with pytest.raises(PatternError, match=problem):
        Pattern(text)


def test_work_is_bounded_whatever_the_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """Visits of positions are what costs Python's time."""
    monkeypatch.setattr(pattern_module, "MAX_VISITS", 8)
    with pytest.raises(PatternError, match="too complex"):
        Pattern("abcde").search_all(["abcdeabcde"[1:]])
