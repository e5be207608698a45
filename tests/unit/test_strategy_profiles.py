"""The profiles of chaos tests are what is in force once they are loaded, whatever was loaded before."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.database import MultiplexedDatabase

from harness.errors import UnknownNameError
from harness.strategies import PROFILES, load_profile
from harness.strategies.profiles import is_of_hypothesis, why_unfit


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """The profile of the other tests comes back."""
    before = settings.get_current_profile_name()
    yield
    settings.load_profile(before)


def in_force() -> settings:
    return settings.default


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("runs", ["live", "offline"])
def test_no_profile_explains_hurries_or_depends_on_the_machine(name: str, runs):
    load_profile(name, runs=runs)

    assert settings.get_current_profile_name() == f"chaos-{name}-{runs}"
    now = in_force()
    assert (now.deadline, now.derandomize, now.report_multiple_bugs, now.print_blob) == (None, False, False, True)
    assert Phase.explain not in now.phases
    assert set(now.phases) >= {Phase.explicit, Phase.reuse}
    assert set(now.suppress_health_check) == {HealthCheck.too_slow, HealthCheck.function_scoped_fixture}
    assert now.database is None


def test_more_effort_tries_more():
    tried = {}
    for name in PROFILES:
        for runs in ("live", "offline"):
            load_profile(name, runs=runs)
            tried[name, runs] = (in_force().max_examples, set(in_force().phases) - {Phase.explicit, Phase.reuse})
    assert tried["pr", "live"][1] == tried["pr", "offline"][1] == set()
    assert tried["ci", "live"] == (25, {Phase.generate})
    assert tried["ci", "offline"] == (500, {Phase.generate})
    assert tried["nightly", "live"] == (200, {Phase.generate})
    assert tried["nightly", "offline"] == (5000, {Phase.generate, Phase.target, Phase.shrink})


def test_what_was_loaded_before_leaves_no_trace():
    settings.register_profile("odd", settings.get_profile("default"), max_examples=1, derandomize=True, database=None)
    settings.load_profile("odd")
    load_profile("ci")
    assert (in_force().max_examples, in_force().derandomize) == (25, False)


def test_failures_are_kept_in_one_place_and_read_in_another_too(tmp_path: Path):
    load_profile("ci", database=tmp_path / "own", shared=tmp_path / "shared")
    database = in_force().database
    assert isinstance(database, MultiplexedDatabase)
    database.save(b"test", b"example")
    assert list(database.fetch(b"test")) == [b"example"]
    assert (tmp_path / "own").exists()
    assert not (tmp_path / "shared").exists(), "what is shared is only read"


def test_a_profile_that_is_not_there_is_refused():
    with pytest.raises(UnknownNameError, match=r"no profile of chaos tests is named 'nightli'; did you mean nightly\?"):
        load_profile("nightli")


def told_in_a_test(*, is_chosen: bool = False, **own: object) -> str:
    """What is said of the settings while an example runs."""
    said: list[str] = []

    @settings(max_examples=1, database=None, **own)
    @given(st.none())
    def test(_: None) -> None:
        said.append(why_unfit(is_chosen=is_chosen))

    test()
    return said[0]


def test_settings_for_functions_are_none_for_jobs():
    assert why_unfit(is_chosen=False) == "", "no example runs"
    settings.load_profile("default")
    assert "own profile 'default' is in force" in told_in_a_test()
    assert "may take 200 ms by the profile 'default'" in told_in_a_test(is_chosen=True)
    assert told_in_a_test(is_chosen=True, deadline=None) == ""
    load_profile("ci")
    assert told_in_a_test() == ""
    assert "may take 50 ms by the profile 'chaos-ci-live'" in told_in_a_test(deadline=50)


@pytest.mark.parametrize("name", ["default", "ci"])
def test_a_profile_of_the_project_is_chosen_whatever_its_name(name: str):
    of_hypothesis = settings.get_profile(name)
    settings.load_profile(name)
    assert is_of_hypothesis()
    try:
        settings.register_profile(name, max_examples=3, deadline=None)
        settings.load_profile(name)
        assert not is_of_hypothesis()
        assert told_in_a_test() == ""
    finally:
        settings.register_profile(name, of_hypothesis)
