"""Which jobs kill points are asked of."""

import msgspec
import pytest

from harness.errors import UnknownNameError, UsageError
from harness.explore.kill_points.jobs import jobs_asked_for
from harness.scenario import Scenario, Workload
from harness.scenario.expectations import Completes

FIRST = Workload(name="first", command=("{python}", "-V"))
SECOND = Workload(name="second", command=("{python}", "-V"))
OTHER = msgspec.structs.replace(FIRST, environment={"MODE": "other"})

TOML = """
[workload]
name = "of-a-file"
command = ["{python}", "-V"]
"""


def names(asked, brought, here) -> list[str]:
    return [job.name for job in jobs_asked_for(asked, lambda: brought, root=here, here=here)]


def test_without_names_all_are_taken_each_once(tmp_path) -> None:
    scenario = Scenario(name="it-is-left-alone", why="a test", workload=FIRST, expects=(Completes(),))

    assert names([], [FIRST, scenario, SECOND], tmp_path) == ["first", "second"]


def test_names_choose(tmp_path) -> None:
    assert names(["second"], [FIRST, SECOND], tmp_path) == ["second"]


def test_jobs_of_one_name_that_differ_are_both_taken(tmp_path) -> None:
    found = jobs_asked_for([], lambda: [FIRST, OTHER, FIRST], root=tmp_path, here=tmp_path)

    assert [(job.name, job.workload) for job in found] == [("first", FIRST), ("first-2", OTHER)]
    assert found[1].subject(0).name == "first-2"


def test_a_configuration_file_brings_its_own_and_no_catalogue_is_asked(tmp_path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "harness.toml").write_text(TOML)

    def refuse():
        raise AssertionError("the catalogue was asked")

    (job,) = jobs_asked_for(["below/harness.toml"], refuse, root=tmp_path, here=tmp_path)

    assert (job.name, job.root) == ("of-a-file", tmp_path / "below")


def test_what_is_not_there_is_refused_by_name(tmp_path) -> None:
    with pytest.raises(UnknownNameError, match="thrid"):
        names(["thrid"], [FIRST, SECOND], tmp_path)
    with pytest.raises(UsageError, match=r"no configuration file .*gone\.toml"):
        names(["gone.toml"], [FIRST], tmp_path)
