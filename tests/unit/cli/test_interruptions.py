"""An interrupt is counted, never in the way of what is being done."""

import os
import signal

import pytest

from harness.cli.commands import run_app
from harness.cli.exits import EXIT_USAGE
from harness.cli.interruptions import INTERRUPTING, Interruptions


def interrupt(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def test_two_are_counted_and_the_third_is_raised_wherever_we_are():
    with Interruptions() as interruptions:
        interrupt()
        interrupt(signal.SIGHUP)
        assert interruptions.count == 2
        with pytest.raises(KeyboardInterrupt):
            interrupt(signal.SIGTERM)

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def test_what_was_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interruptions() as interruptions:
            interrupt()
        assert interruptions.count == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_command_line_leaves_the_handlers_of_its_process_as_they_were():
    before = {number: signal.getsignal(number) for number in INTERRUPTING}
    assert run_app(["no-such-command"]) == EXIT_USAGE
    assert {number: signal.getsignal(number) for number in INTERRUPTING} == before
