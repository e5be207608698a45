"""What is written when a gate is over, or when it broke before: never over something else, and never what was not found."""

import errno
import os
from pathlib import Path

import pytest

from harness.cli.exits import EXIT_INTERRUPTED
from harness.cli.gate_conclusion import Said, conclude, require_acceptable
from harness.cli.gate_summary import GITHUB_SUMMARY, Summary, SummaryPlaceError
from harness.cli.gate_surroundings import surroundings_of
from harness.cli.gating import Gate
from harness.cli.project_plan import AskedOfProject, Project
from harness.clock import ManualClock
from harness.errors import StoreError, UsageError
from harness.gate.markdown import HEADING
from harness.gate.result import Accepted
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import Limits, Plan, Resource
from tests.unit.cli.test_gating import SCENARIO
from tests.unit.gate.results import accepted, config, measured, run, scenario


@pytest.fixture(autouse=True)
def github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "step.md"
    monkeypatch.setenv(GITHUB_SUMMARY, str(path))
    return path


def said(here: Path, *, accepts: bool = False) -> Said:
    return Said(path=here / "gate.toml", accepted=None, accepts=accepts, summary=Summary(here / "summary.md"), as_json=False)


def gate(of: Accepted | None = None) -> Gate:
    return Gate(config=config(), target="local", place="local", chosen=[SCENARIO], accepted=of)


@pytest.mark.parametrize(("broken", "is_accepted"), [(0, True), (EXIT_INTERRUPTED, False)])
def test_after_an_interrupt_nothing_is_accepted(tmp_path: Path, broken: int, is_accepted: bool):
    wanted = gate()
    code = conclude(said(tmp_path, accepts=True), wanted, wanted.judge(measured(scenario(run()))), None, broken=broken)

    assert (code, (tmp_path / "accepted.json").exists()) == (broken, is_accepted)
    assert (tmp_path / "summary.md").read_text().startswith(f"{HEADING}passes")


def test_why_a_gate_is_unknown_as_a_whole_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    wanted = gate(accepted(name="another-job"))

    assert conclude(said(tmp_path), wanted, wanted.judge(measured(scenario(run()))), None, broken=0) == 2
    assert "unknown  accepted and not run now: `another-job`; " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "why"), [(UsageError("no such `place`"), "no such 'place'"), (KeyError(), "KeyError"), (KeyboardInterrupt(), "interrupted")]
)
def test_a_gate_that_breaks_or_is_refused_says_so_where_its_summary_is_awaited(tmp_path: Path, github: Path, error, why):
    summary = Summary(tmp_path / "summary.md")
    (tmp_path / "summary.md").write_text(f"{HEADING}passes, once\n")

    summary.begin()
    assert "passes" not in (tmp_path / "summary.md").read_text()

    with pytest.raises(type(error)), summary.kept():
        raise error

    assert (tmp_path / "summary.md").read_text() == f"{HEADING}**has no result**\n\nNothing was judged: `{why}`\n"
    assert github.read_text() == (tmp_path / "summary.md").read_text()


def test_a_result_that_is_written_stays(tmp_path: Path):
    summary = Summary(tmp_path / "summary.md")

    summary.write(f"{HEADING}passes")

    with pytest.raises(UsageError), summary.kept():
        raise UsageError("no accepted.json can be written")

    assert (tmp_path / "summary.md").read_text() == f"{HEADING}passes"


def test_what_cannot_be_accepted_there_is_refused_before_anything_is_run(tmp_path: Path):
    (tmp_path / "accepted.json").mkdir()

    with pytest.raises(UsageError, match=r"accepted.json: it is a directory; name another place with --accepted"):
        require_acceptable(said(tmp_path, accepts=True), gate())
    with pytest.raises(UsageError, match=r"what is accepted cannot be written to .*: No such file or directory"):
        require_acceptable(said(tmp_path / "nowhere", accepts=True), gate())
    require_acceptable(said(tmp_path / "nowhere"), gate())  # nothing is accepted


def test_a_summary_that_finds_no_room_or_no_place_is_refused_before_anything_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    Summary(tmp_path / "summary.md").require_place()
    assert list(tmp_path.glob(".*")) == []
    monkeypatch.setenv(GITHUB_SUMMARY, str(tmp_path / "nowhere" / "step.md"))
    with pytest.raises(SummaryPlaceError, match=f"nowhere/step.md cannot be written: No such file or directory; unset {GITHUB_SUMMARY}"):
        Summary(None).require_place()
    monkeypatch.delenv(GITHUB_SUMMARY)
    fill_disk(monkeypatch)
    with pytest.raises(SummaryPlaceError, match="No space left on device; name another file with --summary"):
        Summary(tmp_path / "summary.md").require_place()
    assert list(tmp_path.glob(".*")) == []


def test_what_came_of_a_gate_is_told_though_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    wanted = gate()
    fill_disk(monkeypatch)
    with pytest.raises(StoreError, match="name another file with --summary"):
        conclude(said(tmp_path), wanted, wanted.judge(measured(scenario(run()))), None, broken=0)

    assert capsys.readouterr().out.startswith("gate: pass\n")


def fill_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written finds no room."""

    def refuse(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)


def test_what_is_no_summary_is_not_overwritten(tmp_path: Path, github: Path):
    for name, text in (("gate.toml", "[gate]\nall = true\n"), ("accepted.json", "{}"), ("short", "#")):
        (tmp_path / name).write_text(text)
        with pytest.raises(SummaryPlaceError, match="would overwrite"), Summary(tmp_path / name).kept():
            raise AssertionError("it was begun")
        assert (tmp_path / name).read_text() == text
    assert not github.exists()


def test_another_file_of_the_gate_is_refused_though_it_is_not_there_yet(tmp_path: Path):
    summary = Summary(tmp_path / "x" / ".." / "accepted.json")
    (tmp_path / "x").mkdir()

    with pytest.raises(SummaryPlaceError, match="another file of the gate"), summary.kept():
        summary.require_apart([tmp_path / "accepted.json"])
    assert not (tmp_path / "accepted.json").exists()


def test_an_empty_file_and_an_older_summary_are_overwritten(tmp_path: Path):
    for text in ("", f"{HEADING}fails\n"):
        (tmp_path / "summary.md").write_text(text)
        with Summary(tmp_path / "summary.md").kept():
            pass


def test_surroundings_are_the_place_and_the_shape_of_the_job_that_is_adopted():
    now = ManualClock().utc()
    place = Place(project="p", region="europe-west4", bucket="b", job="j")
    facts = {"uid": "u", "max_retries": "3", "gpu_type": "nvidia-l4", "images": "i"}
    job = Resource(kind="job", name="j", action="adopt", facts=facts)
    plan = Plan(made_at=now, expires_at=now, place=place, limits=Limits(), scenarios=(), resources=(job,))
    asked = AskedOfProject(options={}, limits={}, config=None, plans=False, apply=None, plan_file=Path("plan.json"))

    assert surroundings_of(Project(place=place, limits=Limits(), applied=plan, asked=asked)) == {
        "project": "p",
        "region": "europe-west4",
        "job": "j",
        "job.max_retries": "3",
        "job.gpu_type": "nvidia-l4",
    }
    assert set(surroundings_of(None)) == {"machine", "system", "processors"}
