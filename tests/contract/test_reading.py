"""What is read of a job: everything that is true, nothing that is not, and never without a bound."""

import json

import pytest

from harness.history import (
    AttemptExited,
    AttemptStarted,
    Booted,
    Done,
    ExecutionStarted,
    JobEvent,
    LogLine,
    Marked,
    ObservationLost,
    Restored,
    SaveEnded,
    SignalSent,
    SigtermSeen,
    Started,
    StepDone,
)
from tests.contract.driver import SEEN_HERE, python

WRITE = "events = open(os.environ['HARNESS_EVENTS'], 'ab', buffering=0)\n"


def test_all_that_was_said_before_the_exit_comes_before_it(start):
    run = start(python("emit('boot')\nfor step in range(1, 3000): emit('step', step=step)\nprint('last words')\nsys.exit(3)"))

    run.finish()

    at = run.seen.index(run.exits()[0])
    assert [event.step for event in run.seen[:at] if isinstance(event, StepDone)] == list(range(1, 3000))
    assert "last words" in [event.text for event in run.seen[:at] if isinstance(event, LogLine)]
    assert not [event for event in run.seen[at:] if isinstance(event, JobEvent)]


def test_the_stamp_of_a_line_is_used_when_it_can_be_true(start):
    code = """
emit("true")
true = time.monotonic()
time.sleep(0.1)
for t in (-1, true + 1e6, "x", None, float("nan"), []): emit("silly", t=t)
"""
    run = start(python(code))

    run.finish()

    true, *silly = run.of(Marked)
    assert len(silly) == 6
    assert all(true.t_s + 0.1 <= event.t_s <= run.exits()[0].t_s for event in silly)


def test_the_order_of_the_file_is_kept_whatever_its_stamps_say(start):
    run = start(python("now = time.monotonic()\nfor step in (1, 2, 3, 4): emit('step', step=step, t=now - step)"))

    run.finish()

    assert [event.step for event in run.of(StepDone)] == [1, 2, 3, 4]


def test_task_and_attempt_are_those_of_the_file(start):
    run = start(python("emit('boot', task=9, attempt=9)"))

    run.finish()

    assert [(event.task, event.attempt) for event in run.of(Booted)] == [(0, 0)]


def test_garbage_among_the_events_is_dropped_and_counted_once(start):
    lines = [
        b"\x00\xff\x00\n",
        b"not json\n",
        b"[]\n",
        b"\n",
        b'{"event":"step"}\n',
        b'{"event":"step","step":"five"}\n',
        b'{"event":"step","step":1,"digests":7}\n',
        b'{"event":"","step":1}\n',
        b'{"event":"x","deep":' + b"[" * 100_000 + b"\n",
        b'{"event":"x","long":"' + b"x" * (1 << 20) + b'"}\n',
    ]
    good = b'{"event":"eval","loss":NaN,"step":3}\n'
    code = f"{WRITE}for line in {[line for line in lines if len(line) < 1000]!r}: events.write(line)\n"
    code += f"events.write({good!r})\nevents.write(b'{{\"event\":\"x\",\"deep\":' + b'[' * 100000 + b'\\n')\n"
    code += f"events.write(b'{{\"event\":\"x\",\"long\":\"' + b'x' * (1 << 20) + b'\"}}\\n')\nevents.write({good!r})\nevents.write(b'torn')"
    run = start(python(code))

    run.finish()

    assert [(event.name, event.step) for event in run.of(Marked)] == [("eval", 3), ("eval", 3)]
    lost = run.of(ObservationLost)
    assert run.traits.is_remote or len(lost) == 1  # an agent tells of them as they come
    blank = 1 if run.traits.is_remote else 0  # an agent does not say an empty line
    assert ({each.what for each in lost}, sum(each.count for each in lost)) == ({"events"}, len(lines) + 1 - blank), lost
    if not run.traits.is_remote:
        assert "9 not an event" in lost[0].detail
        assert run.seen.index(lost[0]) < run.seen.index(run.exits()[0])


def test_a_hundred_megabytes_of_events_end_neither_the_memory_nor_the_run(start):
    code = WRITE + 'line = (b\'{"event":"noise","pad":"\' + b\'x\' * 470 + b\'"}\\n\') * 200\nfor _ in range(1050): events.write(line)\n'
    run = start(python(code))

    run.finish()

    kept = len(run.of(Marked))
    (lost,) = run.of(ObservationLost)
    assert 0 < kept <= 200_000
    assert kept + lost.count == 210_000, lost
    assert [exited.exit_code for exited in run.exits()] == [0]


def test_a_flood_of_output_delays_neither_the_grace_nor_the_end(start):
    code = """
signal.signal(signal.SIGTERM, lambda *_: emit("sigterm"))
data = (b"x" * 99 + b"\\n") * 5000
for _ in range(8): os.write(1, data)
emit("ready")
while True: os.write(1, data)
"""
    run = start(python(code), grace_s=0.3)
    run.until(Marked)

    run.target.terminate(run.victim(), cause="fault")
    run.finish()

    assert [event.cause for event in run.of(SignalSent)] == ["fault", "grace"]
    assert len(run.lines()) <= 20_000
    assert [lost.what for lost in run.of(ObservationLost)] == ["logs"]


def test_binary_output_is_text_with_replacements(start):
    run = start(python("os.write(1, b'\\xff\\xfe\\x00ok\\n'); os.write(2, b'on stderr'); os.write(1, b'x' * 300000 + b'\\nnext\\n')"))

    run.finish()

    first, long, following = run.lines()
    assert first == "\ufffd\ufffd\x00ok"
    assert len(long) == 256 << 10
    assert following == "next"
    assert run.lines("stderr") == ["on stderr"]
    assert [(lost.what, lost.count) for lost in run.of(ObservationLost)] == [("logs", 1)]


def test_a_job_that_closes_its_output_runs_on(start):
    run = start(python("os.close(1); os.close(2)\nemit('ready')\ntime.sleep(0.2)\nemit('step', step=1)\nos._exit(0)"))

    run.finish()

    assert [event.step for event in run.of(StepDone)] == [1]
    assert [exited.exit_code for exited in run.exits()] == [0]


def test_a_job_that_removes_or_cuts_its_event_file_is_found_out(start):
    code = """
path = os.environ["HARNESS_EVENTS"]
emit("ready")
emit("read")
os.truncate(path, 0)
emit("cut")
emit("again")
os.unlink(path)
"""
    run = start(python(code), armed=("read:after", "cut:before"))

    run.finish()

    assert [event.name for event in run.of(Marked)] == ["ready", "read", "cut", "again"]
    lost = " ".join(event.detail for event in run.of(ObservationLost))
    assert "cut short" in lost
    assert "replaced or removed" in lost


def test_a_silent_job_is_read_from_its_log(start):
    patterns = {
        "step": r"^step (?P<step>\d+)",
        "saved": r"saved (?P<step>\d+)",
        "resumed": r"resumed from (?P<step>\d+)",
        "sigterm": r"^got SIGTERM",
        "done": r"^all done",
    }
    run = start(
        ("sh", "-c", "echo resumed from 4; echo step 5; echo saved 5; echo got SIGTERM; echo all done"), log_patterns=patterns, steps=5
    )

    run.finish()

    events = [event for event in run.seen if isinstance(event, JobEvent)]
    assert [type(event) for event in events] == [Restored, Started, StepDone, SaveEnded, SigtermSeen, Done]
    assert (events[1].restored_step, events[1].steps, events[5].step) == (4, 5, 5)


@pytest.mark.parametrize("target_name", SEEN_HERE, indirect=True)  # elsewhere they are Cloud Logging's own
def test_log_entries_have_the_shapes_of_cloud_logging(start):
    run = start(
        ("sh", "-c", """echo plain; echo '{"severity":"warning","message":"m","step":3}'; echo to stderr >&2; exit 1"""), max_retries=1
    )

    run.finish()

    entries = [json.loads(line) for line in (run.launch.logs_dir / "entries.jsonl").read_text().splitlines()]
    assert len(entries) == len(run.of(LogLine))
    plain = next(entry for entry in entries if entry.get("textPayload") == "plain")
    assert plain["logName"].endswith("/logs/run.googleapis.com%2Fstdout")
    assert plain["resource"]["type"] == "cloud_run_job"
    assert plain["resource"]["labels"]["job_name"] == "contract-job"
    assert plain["resource"]["labels"].keys() == {"job_name", "project_id", "location"}
    assert {name: value for name, value in plain["labels"].items() if name != "instanceId"} == {
        "run.googleapis.com/execution_name": run.of(ExecutionStarted)[0].execution,
        "run.googleapis.com/task_index": "0",
        "run.googleapis.com/task_attempt": "0",
    }
    structured = next(entry for entry in entries if "jsonPayload" in entry)
    assert (structured["severity"], structured["jsonPayload"]["step"]) == ("WARNING", 3)
    system = [entry for entry in entries if entry["logName"].endswith("%2Fvarlog%2Fsystem")]
    assert [entry["textPayload"] for entry in system] == ["Container called exit(1)."] * 2
    assert {entry["labels"]["container_name"] for entry in system} == {"contract-job-1"}
    audit = entries[-1]
    assert audit["logName"].endswith("/logs/cloudaudit.googleapis.com%2Fsystem_event")
    assert audit["severity"] == "ERROR"
    assert audit["protoPayload"]["status"]["code"] == 10
    assert audit["protoPayload"]["methodName"] == "/Jobs.RunJob"
    conditions = {condition["type"]: condition for condition in audit["protoPayload"]["response"]["status"]["conditions"]}
    assert conditions["Completed"]["reason"] == "NonZeroExitCode"
    assert conditions["Retry"]["message"].endswith("for attempt 0.")
    assert len({entry["insertId"] for entry in entries}) == len(entries)


def test_the_entry_of_a_maintenance_event_says_that_its_shape_is_assumed(start):
    run = start(("sh", "-c", "echo up; sleep 60"))
    run.until(LogLine)
    run.until(AttemptStarted)

    run.target.terminate(run.victim(), cause="fault", message="taken away", reason="INSTANCE_PREEMPTED")
    run.until(AttemptExited)

    entries = [json.loads(line) for line in (run.launch.logs_dir / "entries.jsonl").read_text().splitlines()]
    (entry,) = [entry for entry in entries if entry.get("textPayload") == "taken away"]
    assert entry["labels"]["reason"] == "INSTANCE_PREEMPTED"
    assert ("harness/played" if run.traits.is_remote else "harness/assumed") in entry["labels"]


@pytest.mark.parametrize("field", ["what", "note"])
def test_fidelity_says_what_is_real_and_where_the_rest_is_written(start, field):
    run = start(("sh", "-c", "exit 0"))

    fidelity = run.target.fidelity()

    assert all(getattr(item, field) for item in fidelity)
    assert all(item.source for item in fidelity if item.here != "real")
    assert {"real", "emulated", "absent"} == {item.here for item in fidelity}
    assert any(not item.verified for item in fidelity)
