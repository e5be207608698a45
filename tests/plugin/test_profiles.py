"""``--chaos-profile`` decides what Hypothesis tries, on whatever machine."""

import re

import pytest

pytest_plugins = ["pytester"]

SUITE = """
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

drawn = []

@given(st.integers())
def test_draws(number):
    drawn.append(number)

def test_tells():
    print(f"<{settings.get_current_profile_name()} {len(drawn)} {drawn}>")
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("CI", "1")  # where Hypothesis loads a profile of its own
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    pytester.makepyfile(SUITE)
    return pytester


def told(suite: pytest.Pytester, *options: str) -> tuple[str, int, str]:
    """The profile in force, how many examples were drawn, and which."""
    result = suite.runpytest_subprocess("-s", "-p", "no:cacheprovider", "-p", "no:randomly", *options)
    found = re.search(r"<(\S+) (\d+) (.*)>", result.stdout.str())
    assert found is not None, result.stdout.str()
    return found[1], int(found[2]), found[3]


def test_where_no_chaos_test_is_asked_for_nothing_is_changed(suite: pytest.Pytester) -> None:
    assert told(suite)[0] == "ci"


def test_without_it_chaos_tests_are_drawn_by_the_profile_ci(suite: pytest.Pytester) -> None:
    assert told(suite, "-m", "chaos or not chaos")[0] == "chaos-ci-live"


def test_a_profile_that_was_chosen_holds(suite: pytest.Pytester) -> None:
    assert told(suite, "-m", "chaos or not chaos", "--hypothesis-profile", "default")[0] == "default"
    suite.makeconftest("from hypothesis import settings\nsettings.register_profile('own', max_examples=3)\nsettings.load_profile('own')\n")
    assert told(suite, "-m", "chaos or not chaos")[:2] == ("own", 3)


@pytest.mark.parametrize(("name", "count"), [("ci", 25), ("nightly", 200), ("pr", 0)])
def test_it_wins_over_the_profile_that_hypothesis_loads_by_itself(suite: pytest.Pytester, name: str, count: int) -> None:
    profile, drawn, _ = told(suite, "--chaos-profile", name)

    assert profile == f"chaos-{name}-live"
    assert drawn <= count if count else drawn == 0, "Hypothesis stops early where it has drawn all there is"
    assert drawn >= count // 2


def test_the_seed_is_told_and_draws_the_same_again(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess("-s", "-m", "chaos or not chaos", "--chaos-profile", "ci", "-p", "no:cacheprovider")
    first = re.search(r"<.*>", result.stdout.str())
    seed = re.search(r"profile ci, (--hypothesis-seed=\d+)", result.stdout.str())
    assert first is not None
    assert seed is not None, result.stdout.str()

    assert told(suite, "--chaos-profile", "ci", seed[1])[2] in first[0]
    assert told(suite, "--chaos-profile", "ci")[2] not in first[0], "another run has another seed"


def test_all_workers_draw_by_one_seed(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_tells(number, request, worker_id):
            with open("seeds", "a") as file:
                file.write(f"{worker_id} {request.config.getoption('--hypothesis-seed')}\\n")
        """
    )
    suite.runpytest_subprocess("-n", "2", "--chaos-profile", "ci", "-p", "no:cacheprovider").assert_outcomes(passed=4)

    lines = [line.split() for line in (suite.path / "seeds").read_text().splitlines()]
    assert {worker for worker, _ in lines} == {"gw0", "gw1"}
    assert len({seed for _, seed in lines}) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--chaos-profile", "nihgtly"], "*no profile of chaos tests is named 'nihgtly'; did you mean nightly?*"),
        (["--chaos-profile", "ci", "--hypothesis-profile", "ci"], "*name two profiles: leave one out*"),
        (["--chaos-profile", "pr", "--chaos-examples", "nowhere"], "*--chaos-examples nowhere is no directory*"),
    ],
)
def test_what_cannot_be_loaded_is_refused(suite: pytest.Pytester, options: list[str], message: str) -> None:
    suite.runpytest_subprocess(*options).stderr.fnmatch_lines([message])


def test_pr_tries_what_has_failed_elsewhere_and_says_where_it_has_tried_nothing(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest
        from hypothesis import given
        from hypothesis import strategies as st

        @pytest.mark.chaos
        @given(st.integers(0, 1))
        def test_wrong(number):
            assert number == 0
        """
    )

    def run(*arguments: str) -> pytest.RunResult:
        return suite.runpytest_subprocess("-m", "chaos", "-p", "no:cacheprovider", *arguments)

    run("--runs-dir", "night").assert_outcomes(failed=1)
    (suite.path / "day").mkdir()
    green = run("--runs-dir", "day", "--chaos-profile", "pr")
    green.assert_outcomes(skipped=1)
    green.stdout.fnmatch_lines(["chaos: profile pr has tried nothing of 1 drawn tests: no failing examples *"])

    red = run("--runs-dir", "day", "--chaos-profile", "pr", "--chaos-examples", "night/.hypothesis")
    red.assert_outcomes(failed=1)
    red.stdout.no_fnmatch_line("*has tried nothing*")
