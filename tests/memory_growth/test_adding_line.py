"""The line that adds to a name is told from the source where it alone does so, and no line is told else."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tftracer.memory_growth.adding_line import Name, adding_line

FILE = "/home/user/train.py"


def line_of(name: str, text: str, line: int = 0, is_attribute: bool = False, is_within: bool = False, key: str = "") -> str:
    return adding_line(Name(FILE, name, line, is_attribute, is_within, key), {FILE: dedent(text).lstrip()})


@pytest.mark.parametrize(
    "adds",
    [
        "kept.append(x)",
        "kept[x] = 1",
        "kept['loss'].append(x)",
        "kept.setdefault(x, []).append(x)",
        "kept += [x]",
        "kept = numpy.append(kept, x)",
        "kept = kept + x",
        "kept = numpy.concatenate([kept, x], axis=0)",
        "kept = numpy.r_[kept, x]",
    ],
)
def test_one_line_in_a_loop(adds: str) -> None:
    assert line_of("kept", f"kept = make()\nfor x in data:\n    print(len(kept))\n    {adds}\n") == "train.py:4"
    text = f"def main():\n    kept = make()\n    for x in data:\n        {adds}\n    return kept\nkept = 3\n"
    assert line_of("kept", text, line=1) == "train.py:4"
    assert line_of("kept", text) == ""  # the global of this name is another one


@pytest.mark.parametrize(
    "text",
    [
        "for x in data:\n    kept.append(x)\n    kept.append(1)\n",  # two lines
        "kept.append(x)\n",  # once
        "for x in data:\n    kept = numpy.ones(x)\n",  # anew each time
        "other = kept\nfor x in data:\n    kept.append(x)\n",  # another name for it
        "def log(rows, x):\n    rows.append(x)\nfor x in data:\n    kept.append(x)\n    log(rows=kept, x=x)\n",
        "def log(rows, x):\n    rows.append(x)\n    rows.append(1)\nfor x in data:\n    log(kept, x)\n",
        "def log(rows, x):\n    rows.append(x)\nclass Log:\n    def log(self, x): pass\nfor x in data:\n    Log.log(kept, x)\n",
        "add = kept.append\nfor x in data:\n    add(x)\n    kept.append(x)\n",
        "for kept in data:\n    kept.sort()\n",
        "for x in data:\n    kept.append(x\n",  # no Python
    ],
)
def test_no_line_is_told_where_another_one_may_add(text: str) -> None:
    assert line_of("kept", text) == ""


def test_a_closure_belongs_to_the_function_around_it() -> None:
    text = """
        def make():
            seen = []
            def on_step(x):
                seen.append(x)
            return on_step
        def other(seen):
            seen.append(1)
    """
    assert line_of("seen", text, line=3) == "train.py:4"


def test_an_attribute_of_a_class() -> None:
    one = "class Log:\n    def note(self, x):\n        self.rows.append(x)\n"
    assert line_of("rows", one, is_attribute=True) == "train.py:3"
    assert line_of("rows", one + "for x in data:\n    log.rows.append(x)\n", is_attribute=True) == ""


def test_what_grows_within_is_not_put_down_to_the_line_that_made_it() -> None:
    made = "for key in names:\n    kept[key] = []\nfor x in data:\n"
    assert line_of("kept", made + "    kept['loss'].append(x)\n", is_within=True) == "train.py:4"
    assert line_of("kept", made + "    rows = kept['loss']\n    rows.append(x)\n", is_within=True) == ""
    assert line_of("kept", made + "    for rows in kept.values():\n        rows.append(x)\n", is_within=True) == ""


def test_what_grows_within_is_added_under_its_own_key() -> None:
    text = "kept = {'loss': [], 'rows': {}}\nfor x in data:\n    kept['loss'].append(1)\n    kept['rows'][x] = x\n"
    assert line_of("kept", text, is_within=True, key="'rows'") == "train.py:4"
    assert line_of("kept", text, is_within=True, key="'loss'") == "train.py:3"
    assert line_of("kept", text + "    kept[x].append(2)\n", is_within=True, key="'loss'") == ""
    assert line_of("kept", text + "    kept[True] += [2]\n", is_within=True, key="'loss'") == ""
    for adds in ("kept['loss'] += [x]", "kept['loss'] = numpy.append(kept['loss'], x)"):
        assert line_of("kept", f"for x in data:\n    {adds}\n", is_within=True, key="'loss'") == "train.py:2"


def test_the_line_of_the_function_that_is_given_it() -> None:
    text = "def log(x, rows, scale=1):\n    rows.append(x * scale)\nkept = []\nfor x in data:\n    log(x, kept)\n"
    assert line_of("kept", text) == "train.py:2"
    assert line_of("kept", text.replace("log(x, kept)", "log(x, rows=kept)")) == "train.py:2"
    assert line_of("kept", text.replace("for x in data:\n    log(x, kept)", "log(0, kept)")) == ""  # once
    assert line_of("kept", text + "    kept.append(x)\n") == ""
    assert line_of("kept", text.replace("log(x, kept)", "log(*data, kept)")) == ""
    within = "def log(rows, x):\n    rows['loss'].append(x)\n    rows['acc'].append(x)\nfor x in data:\n    log(kept, x)\n"
    assert line_of("kept", within, is_within=True, key="'acc'") == "train.py:3"
    assert line_of("kept", text.replace("kept)", "kept['loss'])"), is_within=True, key="'loss'") == "train.py:2"
