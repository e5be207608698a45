"""From operations to sentences: what the storage models make of hand-written saves, judged by a recovery that is a few lines here."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.explore.judgement import Broken
from harness.explore.moments import timeline
from harness.explore.result import Moment, StateResult, Vulnerability
from harness.explore.states import Model, Scope
from harness.explore.vulnerabilities import find_vulnerabilities
from harness.verdict import Outcome
from tests.unit.explore.recordings import ROOT, Recording

SAVES = (1, 2, 3)
FILES = ("data", "index")

Shown = Mapping[str, bytes | str]
Recover = Callable[[Shown, int], list[str]]
"""What is broken in a state of which a step was acknowledged."""


def content(step: int) -> bytes:
    return b"%d:" % step + b"x" * 20


def directories(recording: Recording, *, synced: tuple[str, ...]) -> None:
    """Saves into a directory that is renamed when it is complete; the one before the last is removed."""
    for step in SAVES:
        recording.say("save.begin", step=step)
        temporary, final = f"step_{step}.tmp", f"step_{step}"
        recording.mkdir(temporary)
        for name in FILES:
            recording.save_file(f"{temporary}/{name}", content(step), syncs=name in synced)
        recording.sync(temporary)
        recording.rename(temporary, final)
        recording.sync(".")
        recording.say("save.end", step=step, digests={})
        if step > 2:
            for name in FILES:
                recording.unlink(f"step_{step - 2}/{name}")
            recording.rmdir(f"step_{step - 2}")
    recording.end()


def newest_directory(shown: Shown, acknowledged: int) -> list[str]:
    """Restores the newest directory that has a final name; when it is torn the next save removes the good one before it."""
    steps = [int(path[5:]) for path in shown if path.startswith("step_") and path[5:].isdigit()]
    newest = max(steps, default=0)
    if newest and any(shown.get(f"step_{newest}/{name}") != content(newest) for name in FILES):
        return ["recovers", "keeps-the-last-good-checkpoint"] if len(steps) > 1 else ["recovers"]
    return ["keeps-what-was-acknowledged"] if newest < acknowledged else []


def one_file(recording: Recording, *, in_place: bool) -> None:
    """Saves into one file: over the old one, or beside it and then renamed."""
    for step in SAVES:
        recording.say("save.begin", step=step)
        name = "state" if in_place else "state.tmp"
        if in_place and step > 1:
            recording.open(name, truncates=True)
        else:
            recording.create(name)
        recording.write(name, content(step)[:5])
        recording.write(name, content(step)[5:], 5)
        recording.close(name)
        if not in_place:
            recording.rename(name, "state")
        recording.say("save.end", step=step, digests={})
    recording.end()


def the_file(shown: Shown, acknowledged: int) -> list[str]:
    """Restores the one file."""
    if "state" not in shown:
        return ["keeps-what-was-acknowledged"] if acknowledged else []
    step = next((step for step in SAVES if shown["state"] == content(step)), None)
    if step is None:
        return ["recovers"]
    return ["keeps-what-was-acknowledged"] if step < acknowledged else []


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return Recording(tmp_path / "log")


def judged(
    recording: Recording, model: Model, scope: Scope, recover: Recover, *, skips: Callable[[Moment], bool] = lambda _: False
) -> list[StateResult]:
    """What is said of each state; ``skips``: moments whose states nobody judges."""
    results = []
    states = recording.enumerate(model, scope)[1]
    with recording.open_data() as data:
        for found in states:
            acknowledged = max((save.step for save in found.saves), default=0)
            broken = tuple(Broken(promise=promise, says=promise) for promise in recover(recording.shown(found.crash.tree), acknowledged))
            is_cut = any(map(skips, found.moments))
            results.append(
                StateResult(
                    state=found.task(data, root=ROOT).state,
                    moments=tuple(found.moments),
                    outcome=None if is_cut else Outcome.INVALID if broken else Outcome.VALID,
                    broken=() if is_cut else broken,
                    promised_step=acknowledged,
                )
            )
    return results


def found(
    recording: Recording, model: Model, scope: Scope, recover: Recover, *, skips: Callable[[Moment], bool] = lambda _: False
) -> list[Vulnerability]:
    results = judged(recording, model, scope, recover, skips=skips)
    vulnerabilities = find_vulnerabilities(results, timeline(recording.replay()).strip, run_directory="runs/explore/x")
    assert {name for each in vulnerabilities for name in each.states} == {each.state for each in results if each.outcome is Outcome.INVALID}
    return list(vulnerabilities)


def says(recording: Recording, model: Model, scope: Scope, recover: Recover) -> list[str]:
    return sorted(each.says for each in found(recording, model, scope, recover))


@pytest.mark.parametrize(
    ("model", "scope"), [("posix", "process"), ("posix-weak", "node"), ("gcsfuse-hns", "node"), ("gcsfuse-flat", "process")]
)
def test_a_directory_that_is_synced_and_renamed_survives(recording, model, scope):
    directories(recording, synced=FILES)

    assert says(recording, model, scope, newest_directory) == []


def newest_of_two(shown: Shown, acknowledged: int) -> list[str]:
    """Restores the newer one of two copies that are whole."""
    newest = max((step for step in SAVES for name in FILES if shown.get(name) == content(step)), default=0)
    return ["keeps-what-was-acknowledged"] if newest < acknowledged else []


def test_one_of_two_copies_must_be_durable_before_the_job_says_so(recording):
    for step in SAVES:
        recording.say("save.begin", step=step)
        for name in FILES:
            recording.save_file(f"{name}.tmp", content(step))
            recording.rename(f"{name}.tmp", name)
        recording.say("save.end", step=step, digests={})
    recording.end()

    either = "`write data.tmp or rename data.tmp or write index.tmp or rename index.tmp`"
    assert says(recording, "posix-weak", "node", newest_of_two) == [f"{either} must be durable before the job says `save.end`"]


def test_a_flat_bucket_makes_a_rename_of_a_directory_the_one_vulnerability(recording):
    directories(recording, synced=FILES)

    (only,) = found(recording, "gcsfuse-flat", "node", newest_directory)

    assert only.says == "rename of `step_*.tmp` must be atomic"
    assert only.leads_to == "6 states cannot recover, 4 then delete the last good checkpoint"
    assert "directory-rename-order" in only.assumed


def test_the_file_that_is_never_synced_is_named(recording):
    directories(recording, synced=("data",))

    (only,) = found(recording, "posix-weak", "node", newest_directory)

    assert only.says == "`write step_*.tmp/index` must be durable before `rename step_*.tmp`"


def test_an_overwrite_in_place_is_a_window_and_under_gcsfuse_a_file_that_is_seen_too_early(recording):
    one_file(recording, in_place=True)

    assert says(recording, "posix", "process", the_file) == [
        "`create state` to `write state` must be atomic",
        "`open state` to `write state` must be atomic",
    ]
    assert says(recording, "gcsfuse-flat", "process", the_file) == ["`state` must not be visible before it is complete"]
    assert says(recording, "gcsfuse-flat", "node", the_file) == []


def test_of_a_replacement_without_any_sync_both_missing_ones_are_named(recording):
    one_file(recording, in_place=False)

    assert says(recording, "posix", "process", the_file) == []
    assert says(recording, "posix-weak", "node", the_file) == [
        "`rename state.tmp` must be durable before the job says `save.end`",
        "`write state.tmp` must be durable before `rename state.tmp`",
    ]


def moved_in(recording: Recording, *, unsynced: bool) -> None:
    """Saves into a file elsewhere, and moves it in."""
    for step in SAVES:
        recording.say("save.begin", step=step)
        recording.move_file_in("state", content(step), unsynced=unsynced)
        recording.sync(".")
        recording.say("save.end", step=step, digests={})
    recording.end()


def test_of_a_file_that_is_moved_in_what_was_written_elsewhere_is_named(recording):
    moved_in(recording, unsynced=True)

    assert says(recording, "posix-weak", "node", the_file) == ["`write state` must be durable before `move-in state`"]


def test_a_file_that_was_synced_before_it_is_moved_in_survives(recording):
    moved_in(recording, unsynced=False)

    assert says(recording, "posix-weak", "node", the_file) == []


def test_an_overwrite_by_one_call_of_several_pages_must_be_atomic(recording):
    long = {step: content(step) + bytes([step]) * 10_000 for step in SAVES}
    for step in SAVES:
        recording.say("save.begin", step=step)
        (recording.create if step == 1 else recording.open)("state")
        recording.write("state", long[step])
        recording.close("state")
        recording.say("save.end", step=step, digests={})

    def restore(shown: Shown, acknowledged: int) -> list[str]:
        whole = [step for step in SAVES if shown.get("state") == long[step]]
        return ["recovers"] if acknowledged and not whole else []

    assert says(recording, "posix", "process", restore) == ["`write state` must be atomic"]


def kept_open(recording: Recording, *, closes: bool) -> None:
    """Saves into one file that stays open and is synced; writes another when it is done."""
    recording.create("state")
    for step in SAVES:
        recording.say("save.begin", step=step)
        recording.write("state", content(step))
        recording.sync("state")
        if closes:
            recording.close("state")
        recording.say("save.end", step=step, digests={})
        if closes:
            recording.open("state")
    recording.save_file("final", b"done")
    recording.end()


def test_a_file_that_stays_open_must_be_closed_and_what_is_written_after_it_is_not_to_blame(recording):
    kept_open(recording, closes=False)

    (only,) = found(recording, "object-store", "process", the_file)

    assert only.says == "`state` must be closed before the job says `save.end`: an open file is published only when it is closed"
    assert (only.rule, only.first) == ("closed-before", "create state")


def test_a_file_that_is_closed_before_it_is_acknowledged_survives(recording):
    kept_open(recording, closes=True)

    assert says(recording, "object-store", "process", the_file) == []


def torn_late(moment: Moment) -> bool:
    """Moments of a rename at which a write is missing or torn."""
    return moment.cause.kind in ("omitted", "torn") and moment.point.operation == "rename"


def synced_names(recording: Recording) -> None:
    """Saves beside and renames, but syncs names only; then begins the next save in the same way."""
    for step in SAVES:
        recording.say("save.begin", step=step)
        recording.create("state.tmp")
        recording.write("state.tmp", content(step))
        recording.close("state.tmp")
        recording.rename("state.tmp", "state")
        recording.sync(".")
        recording.say("save.end", step=step, digests={})
        recording.save_file("notes", b"x")
        recording.unlink("notes")
    recording.end()


MISSING = "`write state.tmp` must be durable"


def test_where_the_rename_was_not_judged_it_is_only_a_guess_and_no_other_operation_is_named(recording):
    synced_names(recording)

    assert says(recording, "posix-weak", "node", the_file) == [f"{MISSING} before `rename state.tmp`"]
    (only,) = found(recording, "posix-weak", "node", the_file, skips=lambda moment: torn_late(moment) or moment.point.operation == "sync")
    assert only.says == f"{MISSING} earlier, perhaps before `rename state.tmp`: what lies between was not judged"
    assert (only.first, only.second) == ("write state.tmp", "")


def test_a_save_that_was_judged_in_full_answers_for_those_that_were_not(recording):
    synced_names(recording)

    def skips(moment: Moment) -> bool:
        return moment.cause.kind in ("omitted", "torn") and moment.point.marker_nth > 1 and moment.point.operation in ("rename", "sync", "")

    (only,) = found(recording, "posix-weak", "node", the_file, skips=skips)
    assert only.says == f"{MISSING} before `rename state.tmp`"
    assert "not judged" not in only.example


def test_an_operation_of_the_next_save_is_told_as_that(recording):
    for step in SAVES:
        recording.say("save.begin", step=step)
        recording.save_file(f"state_{step}", content(step))
        recording.sync(".")
        recording.say("save.end", step=step, digests={})
    recording.end()

    def newest_but_one(shown: Shown, _: int) -> list[str]:
        before = sorted(shown)[-2:-1]
        return ["recovers"] if any(shown[name] != content(int(name[6:])) for name in before) else []

    assert says(recording, "posix-weak", "node", newest_but_one) == ["`write state_*` must be durable before the next `create state_*`"]
