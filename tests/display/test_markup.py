"""Pieces of HTML for notebooks: whatever the texts are, they stay texts."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from tftracer.display import markup
from tftracer.errors import FormatError


class Parsed(HTMLParser):
    """The elements and the text of a piece of HTML."""

    def __init__(self, piece: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.words = ""
        self.feed(piece)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)

    def handle_data(self, data: str) -> None:
        self.words += data


@given(st.text(max_size=200), st.text(max_size=200))
def test_texts_never_become_elements(title: str, cell: str) -> None:
    piece = Parsed(markup.block(title, markup.table(("name",), [(cell,)]), markup.points([cell]), markup.note(cell)))
    assert set(piece.elements) == {"div", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert piece.words.count("".join(c if c.isprintable() else "\ufffd" for c in cell)) >= 2


def test_long_texts_are_shortened_and_unseen_characters_replaced() -> None:
    assert markup.text("a" * 400) == "a" * 299 + "…"
    assert markup.text("a\u202eb\x00") == "a\ufffdb\ufffd"


def test_an_object_that_cannot_be_shown_says_why() -> None:
    def fails(error: Exception) -> str:
        def render() -> str:
            raise error

        return Parsed(markup.shown("Session <x>", render)).words

    assert fails(KeyError("<b>")) == "Session <x>It cannot be shown: KeyError: '<b>'"
    assert fails(FormatError("It is damaged.")) == "Session <x>It cannot be shown: It is damaged."


def test_an_empty_table_is_none() -> None:
    assert markup.table(("a", "b"), []) == markup.points([]) == ""
