"""What others wrote is shown as it is, and does nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report.text import LINE_MAX, TEXT_MAX, Whole, clean, codes, line, links


def test_colours_of_a_terminal_are_taken_away():
    assert clean("\x1b[36m(worker pid=5)\x1b[0m up\x1b]0;title\x07!") == "(worker pid=5) up!"


@pytest.mark.parametrize(
    ("written", "shown"), [("a\x00b", "a␀b"), ("a\rb", "a␍b"), ("a\x7f", "a␡"), ("\x9b31m", "�31m"), ("tab\there", "tab\there")]
)
def test_control_characters_are_seen_and_do_not_act(written, shown):
    assert clean(written) == shown


def test_characters_that_reorder_a_line_are_named():
    assert clean("exit \u202e0\u202c") == "exit ⟨U+202E⟩0⟨U+202C⟩"


def test_a_lone_surrogate_can_be_written_as_utf_8():
    assert clean("a\ud800b").encode() == "a�b".encode()


def test_a_line_of_a_megabyte_is_cut_and_says_how_long_it_was():
    shown = line("x" * 1_000_000)

    assert shown.startswith("x" * LINE_MAX + "…")
    assert shown.endswith("(1,000,000 characters)")


def test_a_line_that_is_long_for_its_colours_alone_is_not_cut():
    assert line("\x1b[36m" * 100 + "short") == "short"


def test_a_line_break_inside_a_line_is_seen():
    assert line("one\ntwo\n") == "one␊two"


def test_our_own_text_is_shown_whole():
    assert clean(Whole("y" * 10 * TEXT_MAX)) == "y" * 10 * TEXT_MAX


def test_only_web_addresses_become_links():
    pieces = links("see https://example.org/a#b (or javascript:alert(1)), https://example.org/c.")

    assert [piece.url for piece in pieces if piece.url] == ["https://example.org/a#b", "https://example.org/c"]
    assert "".join(piece.text for piece in pieces) == "see example.org/a#b (or javascript:alert(1)), example.org/c."


@given(st.text(alphabet=st.characters(), max_size=300))
def test_whatever_is_written_nothing_that_acts_is_left(text):
    shown = clean(text)

    assert not any(ord(character) < 32 and character not in "\t\n" for character in shown)
    assert shown.encode().decode() == shown


def test_what_stands_between_backticks_is_code():
    assert codes("`write a` to `write b` must be atomic") == (
        ("write a", True),
        (" to ", False),
        ("write b", True),
        (" must be atomic", False),
    )


def test_a_backtick_that_closes_nothing_is_a_character():
    assert codes("`a` and b`c") == (("a", True), (" and b`c", False))
    assert codes("`") == (("`", False),)
    assert codes("") == ()
