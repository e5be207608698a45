"""Chaos tests run where the command line asks for them, and nowhere else."""

import pytest

from harness.pytest_plugin.asked import is_asked_for

pytest_plugins = ["pytester"]

SUITE = """
import pytest

def test_plain():
    pass

@pytest.mark.chaos
def test_hit():
    pass

@pytest.mark.chaos
def test_hit_twice():
    pass

@pytest.mark.chaos
class TestMany:
    def test_hit(self):
        pass

    def test_hit_twice(self):
        pass
"""


@pytest.mark.parametrize(
    ("expression", "is_asked"),
    [
        ("chaos", True),
        ("chaos and not slow", True),
        ("chaos or not chaos", True),
        ("not (slow or not chaos)", True),
        ("device(name='a') and chaos", True),
        ("chaos and not(slow)", True),
        ("", False),
        ("slow", False),
        ("chaotic or no.chaos", False),
        ("not chaos", False),
        ("not(chaos)", False),
        ("not (chaos or slow)", False),
        ("not (slow or chaos) and device(name='chaos')", False),
        ("slow and not chaos", False),
        ("chaos and", False),
    ],
)
def test_an_expression_asks_for_chaos_tests_where_one_can_be_true_of_any(
    pytester: pytest.Pytester, expression: str, is_asked: bool
) -> None:
    assert is_asked_for(pytester.parseconfig("-m", expression)) is is_asked


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(test_one=SUITE, test_other=SUITE)
    return pytester


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["test_one.py::test_hit"], ["test_one.py::test_hit"]),
        (["test_one.py::test_hit", "test_other.py"], ["test_one.py::test_hit", "test_other.py::test_plain"]),
        (["test_one.py::TestMany"], ["test_one.py::TestMany::test_hit", "test_one.py::TestMany::test_hit_twice"]),
        (["test_one.py", "-m", "not (chaos or slow)"], ["test_one.py::test_plain"]),
        (["test_one.py"], ["test_one.py::test_plain"]),
        (["--pyargs", "test_one::test_hit", "test_other.py"], ["test_one.py::test_hit", "test_other.py::test_plain"]),
    ],
)
def test_a_chaos_test_runs_without_the_expression_where_its_own_id_is_given(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, arguments: list[str], names: list[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(suite.path), prepend=":")
    result = suite.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:randomly", "--collect-only", "-q", *arguments)
    assert [line for line in result.outlines if "::" in line] == names
