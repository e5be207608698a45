"""What a person reads while scenarios run."""

import io

from rich.console import Console

from harness.cli.display import LiveDisplay, PlainDisplay
from harness.cli.worker import Progressed, Refused, Waiting
from harness.clock import ManualClock

WHY = "process 7 works on the cluster c, since 20:31:05 UTC; waiting for it to end"


def plain(clock: ManualClock) -> tuple[PlainDisplay, io.StringIO]:
    out = io.StringIO()
    return PlainDisplay(Console(file=out, width=300), clock), out


def test_without_a_terminal_a_wait_is_told_when_it_begins_and_when_it_is_over():
    clock = ManualClock()
    display, out = plain(clock)

    display.waiting(Waiting(scenario="a-job-runs", why=WHY))
    clock.sleep(30)
    display.waiting(Waiting(scenario="a-job-runs", why=WHY.replace("7", "8")))
    clock.sleep(29)
    display.waiting(Waiting(scenario="a-job-runs"))
    display.waiting(Waiting(scenario="a-job-runs", why=WHY))

    assert out.getvalue().splitlines() == [f"a-job-runs: {WHY}", "a-job-runs: goes on after 59 s", f"a-job-runs: {WHY}"]


def test_on_a_terminal_the_time_of_a_scenario_stands_still_while_it_waits():
    clock, out = ManualClock(), io.StringIO()
    console = Console(file=out, width=300)
    display = LiveDisplay(console, clock, 1)

    def shown() -> str:
        with console.capture() as capture:
            console.print(display._table())
        return " ".join(capture.get().split("\n")[0].split())

    display.began("a-job-runs")
    clock.sleep(2)
    display.waiting(Waiting(scenario="a-job-runs", why=WHY))
    clock.sleep(59)
    assert shown() == f"… 2.0 s a-job-runs waits, 59 s: {WHY}"

    display.waiting(Waiting(scenario="a-job-runs"))
    clock.sleep(3)
    display.progressed(Progressed(scenario="a-job-runs", text="attempt 0, step 1, faults 0"))
    assert shown() == "… 5.0 s a-job-runs attempt 0, step 1, faults 0"


def test_an_interrupt_is_answered_with_what_is_being_ended_and_what_that_may_take():
    display, out = plain(ManualClock())

    display.stopping(["a-job-runs", "another-job-runs"], 30.0, "interrupted")
    display.ended(Refused(scenario="a-job-runs", exit_code=130, message="interrupted; everything it started was ended", directory="runs/x"))

    said = out.getvalue().splitlines()
    assert said[0] == (
        "interrupted; ends what runs: a-job-runs, another-job-runs; that may take up to 30 s; a second interrupt waits no longer"
    )
    assert said[2].split() == ["stopped", "a-job-runs"]
