"""The Logging query language: what a filter is, and what is said of one that is none."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.emulator.logging.query import FilterError, matches, parse_filter
from harness.emulator.logging.query.parsing import FILTER_LENGTH_MAX, NESTING_MAX
from harness.emulator.logging.query.syntax import AllOf, AnyOf, Not, TextSearch
from harness.emulator.logging.query.tokens import quote

LEAVES = {
    "severity>=WARNING": True,
    'jsonPayload.step="7"': True,
    "resource.type:job": True,
    '"hello"': True,
    "severity=INFO": False,
    "jsonPayload.step>7": False,
    'labels."a.b/c"=other': False,
    "nowhere": False,
}
ENTRY = {
    "logName": "projects/p/logs/l",
    "resource": {"type": "cloud_run_job", "labels": {}},
    "severity": "ERROR",
    "labels": {"a.b/c": "d"},
    "jsonPayload": {"step": 7, "text": "Hello World"},
}


def trees():
    """(how a tree is written, whether the entry matches), with parentheses only where they are needed."""

    def combine(children):
        listed = st.lists(children, min_size=2, max_size=4)
        return st.one_of(
            children.map(lambda child: ("not", [child])),
            listed.map(lambda parts: ("or", parts)),
            listed.map(lambda parts: ("and", parts)),
            listed.map(lambda parts: ("beside", parts)),
        )

    return st.recursive(st.sampled_from(sorted(LEAVES)), combine, max_leaves=12)


def judge(tree):
    if isinstance(tree, str):
        return LEAVES[tree]
    kind, parts = tree
    judged = [judge(part) for part in parts]
    return {"not": not judged[0], "or": any(judged)}.get(kind, all(judged))


BINDS = {"and": 0, "beside": 0, "or": 1, "not": 2}


def write(tree, around=0):
    if isinstance(tree, str):
        return tree
    kind, parts = tree
    if kind == "not":
        inner = write(parts[0], 3)
        text = f"NOT {inner}"
    else:
        joint = {"and": " AND ", "or": " OR ", "beside": " "}[kind]
        text = joint.join(write(part, BINDS[kind] + 1) for part in parts)
    return f"({text})" if BINDS[kind] < around else text


@given(trees())
def test_a_filter_means_what_its_tree_means(tree):
    assert matches(parse_filter(write(tree)), ENTRY) is judge(tree)


@given(st.text())
def test_garbage_is_refused_with_a_message_and_nothing_else(text):
    with contextlib.suppress(FilterError):
        assert matches(parse_filter(text), ENTRY) in (True, False)


WORDS = [
    "AND",
    "OR",
    "NOT",
    "-",
    "(",
    ")",
    ",",
    "=",
    "!=",
    ">=",
    ":",
    "=~",
    "!~",
    '"a"',
    "'",
    '"',
    "severity",
    "labels.",
    ".x",
    "*",
    "sample(",
    "log_id(",
    "\\",
    "1e999",
    "--",
    "\n",
]


@given(st.lists(st.sampled_from(WORDS), max_size=20).flatmap(lambda words: st.sampled_from([" ".join(words), "".join(words)])))
def test_garbage_of_the_language_s_own_words_is_refused_likewise(text):
    with contextlib.suppress(FilterError):
        assert matches(parse_filter(text), ENTRY) in (True, False)


@given(st.text(min_size=1))
def test_any_text_can_be_searched_for_when_it_is_quoted(text):
    assert matches(parse_filter(f"textPayload={quote(text)}"), {"textPayload": text})


def test_or_binds_tighter_than_and():
    tree = parse_filter('"a" OR NOT "b" AND NOT "c" OR "d"')
    assert isinstance(tree, AllOf)
    assert [type(part) for part in tree.parts] == [AnyOf, AnyOf]


def test_two_comparisons_side_by_side_are_both_wanted():
    assert isinstance(parse_filter("a b"), AllOf)


def test_boolean_words_in_small_letters_are_searched_for():
    tree = parse_filter("a or b")
    assert isinstance(tree, AllOf)
    assert all(isinstance(part, TextSearch) for part in tree.parts)


def test_a_minus_is_a_not_before_a_comparison_and_a_sign_before_a_number():
    assert isinstance(parse_filter("-severity=ERROR"), Not)
    assert matches(parse_filter("jsonPayload.x=-5"), {"jsonPayload": {"x": -5}})


def test_the_empty_filter_and_one_of_remarks_match_everything():
    assert matches(parse_filter(""), ENTRY)
    assert matches(parse_filter("  \n-- severity=INFO\n"), ENTRY)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("logName=projects/a:b/logs/c", "Unparseable filter: syntax error at line 1, column 18, token ':'"),
        ("severity=ERROR AND", "Unparseable filter: syntax error at line 1, column 18, token '<EOF>'"),
        ("a\n  AND b )", "Unparseable filter: syntax error at line 2, column 8, token ')'"),
        ("severity==ERROR", "Unparseable filter: syntax error at line 1, column 9, token '='"),
        ("NOT NOT a", "Unparseable filter: syntax error at line 1, column 4, token 'NOT'"),
        ('textPayload="open', "Unparseable filter: syntax error at line 1, column 12, token '\"'"),
        ("nosuch.field=1", "Unparseable filter: field not found: 'nosuch.field' at line 1, column 0"),
        ("resource.nosuch=1", "Unparseable filter: field not found: 'resource.nosuch' at line 1, column 0"),
        ("labels.a.b=1", "Unparseable filter: field not found: 'labels.a.b' at line 1, column 0"),
        ("a AND search_for(x)", "Unparseable filter: unrecognized function 'search_for' at line 1, column 6, token 'search_for'"),
        ("log_id(a, b)", "Unparseable filter: function 'log_id' takes 1 arguments, not 2 at line 1, column 6, token '('"),
        ("severity>=LOUD", "Unparseable filter: invalid severity value at line 1, column 10, token 'LOUD'"),
        ("timestamp>yesterday", "Unparseable filter: invalid timestamp value at line 1, column 10, token 'yesterday'"),
        ('textPayload=~"(?<!a)b"', "Unparseable filter: invalid regular expression at line 1, column 13, token '\"(?<!a)b\"'"),
        ("sample(insertId, 2)", "Unparseable filter: not a fraction from 0 to 1 at line 1, column 17, token '2'"),
        ('ip_in_net(textPayload, "x")', "Unparseable filter: not a network at line 1, column 23, token '\"x\"'"),
    ],
)
def test_a_refusal_says_what_and_where(text, said):
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert str(caught.value) == said


def test_a_regular_expression_that_is_none_is_refused():
    with pytest.raises(FilterError, match="invalid regular expression"):
        parse_filter('textPayload=~"a("')


def test_nesting_is_bounded():
    assert matches(parse_filter("(" * NESTING_MAX + "hello" + ")" * NESTING_MAX), ENTRY)
    with pytest.raises(FilterError, match="nested more than 50 deep at line 1, column 50"):
        parse_filter("(" * 10_000)


def test_length_is_bounded():
    assert matches(parse_filter("hello " * (FILTER_LENGTH_MAX // 6)), ENTRY)
    with pytest.raises(FilterError, match="20001 characters, maximum 20000"):
        parse_filter("a" * (FILTER_LENGTH_MAX + 1))
