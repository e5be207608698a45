"""All runs on one page, whatever state they are in."""

import os
import re

import msgspec
import pytest

from harness.clock import SystemClock
from harness.history import RunOpened
from harness.report import write_index, write_run
from harness.report.index import overview_of
from harness.scenario import encode
from harness.store import RunStore
from tests.unit.checkers.builders import JOB, resumed, scenario_of
from tests.unit.report.records import INVALID, VALID, keep
from tests.unit.report.test_page import ATTACK, read, words


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs", SystemClock())


def run(store, name="a-job-is-judged", *, at="2026-01-01T00:00:00.000+00:00", verdict=VALID, directory="20260101T000000.000Z-0"):
    """A finished run with a header that says when it was opened."""
    events = [msgspec.structs.replace(event, opened_at=at) if isinstance(event, RunOpened) else event for event in resumed().events]
    scenario = msgspec.structs.replace(scenario_of(JOB), name=name)
    return keep(store.root, events, scenario=scenario, verdict=verdict, name=directory)


def test_the_newest_run_of_each_scenario_comes_first_and_older_ones_below(store):
    run(store, at="2026-01-01T00:00:00", directory="one", verdict=INVALID)
    run(store, at="2026-01-03T00:00:00", directory="three")
    run(store, at="2026-01-02T00:00:00", directory="two")

    overview = overview_of(store)

    assert [row.name for row in overview.newest] == ["a-job-is-judged/three"]
    assert [row.name for row in overview.older] == ["a-job-is-judged/two", "a-job-is-judged/one"]
    assert (overview.count("valid"), overview.count("invalid")) == (1, 0)


def test_what_is_not_valid_comes_before_what_is(store):
    run(store, "a-good-one")
    run(store, "z-bad-one", verdict=INVALID)

    assert [row.summary.scenario for row in overview_of(store).newest] == ["z-bad-one", "a-good-one"]
    page = words(write_index(store).read_bytes())
    assert "bit-exact-resume: rng differs at step 6" in page


def test_a_run_links_to_its_page_where_it_has_one(store):
    write_run(run(store, "a-shown-one"))
    run(store, "an-unshown-one")

    page = read(write_index(store).read_bytes())

    assert [attributes["href"] for attributes in page.of("a")] == ["a-shown-one/20260101T000000.000Z-0/report.html"]


def test_the_summary_beside_the_page_is_used_and_an_old_one_is_not(store):
    directory = run(store)
    write_run(directory)
    written = directory.summary_path.read_bytes()
    directory.summary_path.write_bytes(written.replace(b'"attempts":2', b'"attempts":7'))

    assert overview_of(store).newest[0].summary.attempts == 7

    later_ns = directory.summary_path.stat().st_mtime_ns + 1_000_000
    os.utime(directory.verdict_path, ns=(later_ns, later_ns))

    assert overview_of(store).newest[0].summary.attempts == 2


def test_a_summary_tells_where_the_run_is_now_and_not_where_it_was(store, tmp_path):
    write_run(run(store))
    moved = RunStore(store.root.rename(tmp_path / "elsewhere"), SystemClock())

    assert overview_of(moved).newest[0].summary.run.startswith(str(tmp_path / "elsewhere"))


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b'{"outcome":5}'])
def test_a_damaged_summary_is_made_again(store, damage):
    directory = run(store)
    directory.summary_path.write_bytes(damage)

    assert overview_of(store).newest[0].summary.outcome == "valid"


def test_a_run_that_is_not_over_is_listed_with_the_reason(store):
    run(store, "a-running-one", verdict=None)
    given_up = run(store, "a-given-up-one", verdict=None)
    owner = given_up.owner()
    assert owner is not None
    another = msgspec.structs.replace(owner.process, started_s=owner.process.started_s - 1000.0)
    given_up.owner_path.write_bytes(msgspec.json.encode(msgspec.structs.replace(owner, process=another)))

    overview = overview_of(store)

    assert {entry.name.partition("/")[0]: entry.reason for entry in overview.unfinished} == {
        "a-running-one": "running",
        "a-given-up-one": "ended before it was judged",
    }
    assert "ended before it was judged" in words(write_index(store).read_bytes())


@pytest.mark.parametrize("name", ["scenario_path", "history_path", "verdict_path", "owner_path"])
def test_a_broken_run_does_not_hide_the_others(store, name):
    run(store, "a-good-one")
    broken = run(store, "a-broken-one")
    getattr(broken, name).write_bytes(b"\x00garbage")

    overview = overview_of(store)

    assert "a-good-one" in [row.summary.scenario for row in overview.newest]
    assert len(overview.newest) + len(overview.unfinished) == 2
    assert write_index(store).exists()


def test_a_run_whose_history_is_gone_is_shown_by_its_verdict(store):
    run(store).history_path.unlink()

    (row,) = overview_of(store).newest

    assert (row.summary.outcome, row.summary.attempts) == ("valid", 0)


def test_uninterrupted_runs_kept_for_comparison_are_not_listed(store):
    golden, _ = store.create_golden("key", "0")
    golden.write(golden.scenario_path, encode(scenario_of(JOB)))
    golden.write(golden.verdict_path, msgspec.json.encode(VALID))

    overview = overview_of(store)

    assert (overview.newest, overview.older, overview.unfinished) == ([], [], [])


def test_an_index_over_nothing_says_so(store):
    store.root.mkdir()

    assert "No run is over yet." in words(write_index(store).read_bytes())


def test_what_a_run_says_does_nothing(store):
    directory = run(store, verdict=INVALID)
    write_run(directory)
    summary = msgspec.json.decode(directory.summary_path.read_bytes())
    summary |= {"scenario": ATTACK, "reasons": [ATTACK, "\x1b[31m\x00"], "target": ATTACK, "tags": [ATTACK], "opened_at": ATTACK}
    directory.summary_path.write_bytes(msgspec.json.encode(summary))

    page = write_index(store).read_bytes()

    reader = read(page)
    assert len(reader.of("script")) == 1
    assert reader.of("img") == []
    assert [name for _, attributes in reader.elements for name in attributes if name.startswith("on")] == []
    assert not re.search(rb"[\x00-\x08\x0b-\x1f]", page)


def test_an_index_is_written_whole_over_an_older_one(store):
    run(store)
    write_index(store)
    run(store, "another-job-is-judged")

    assert "2 scenarios" in words(write_index(store).read_bytes())
    assert [path.name for path in store.root.iterdir() if path.is_file()] == ["index.html"]


def test_runs_of_one_scenario_on_two_targets_are_two_rows(store):
    for target, directory in (("local", "one"), ("kind", "two"), ("kind", "three")):
        kept = run(store, at=f"2026-01-01T00:00:0{len(directory)}", directory=directory)
        path = kept.history_path
        path.write_bytes(path.read_bytes().replace(b'"target":"local"', f'"target":"{target}"'.encode()))

    overview = overview_of(store)
    assert [(row.summary.target, row.name) for row in overview.newest] == [
        ("kind", "a-job-is-judged/three"),
        ("local", "a-job-is-judged/one"),
    ]
    assert overview.targets == ("kind", "local")
    assert "on kind, local" in words(write_index(store).read_bytes())
