"""What goes between an executor and a worker arrives as it was, one line each."""

import pytest

from harness.explore.executors.wire import Answer, Setup, decode, encode
from harness.explore.executors.worker_process import longest_s
from harness.explore.judgement import Recovery, SaveSeen
from harness.explore.judging.trial import INSPECT_S_MAX
from harness.explore.recipe import Piece, Recipe, StateTask, Tried

RECOVERY = Recovery(
    exit_code=0, digests={4: {"params": "a"}, 8: {}}, saves=(SaveSeen(step=4),), left=("a/\udc80", "b\nc"), inspected_before=-1
)


def test_an_answer_arrives_as_it_was_whatever_bytes_are_in_it() -> None:
    answer = Answer(tried=Tried(state="s", first=RECOVERY, lost="\udcff"), replaced=("why",))
    line = encode(answer)

    assert line.count(b"\n") == 1
    assert decode(line, Answer) == answer


def test_a_task_and_a_setup_arrive_as_they_were() -> None:
    task = StateTask(state="s", pieces=(Piece(path="a", kind="link", content="b"),), again=True, fresh=True)
    setup = Setup(
        recipe=Recipe(command=("x",), patterns={"step": "(?P<step>.)"}), blobs="b", place="p", run_id="r", surroundings={"A": "1"}
    )

    assert decode(encode(task), StateTask) == task
    assert decode(encode(setup), Setup) == setup


REFUSED = {b"": "Expecting value", b"{": "Expecting property name", b"{}": "missing required field", b'{"tried": 1}': "Expected `object`"}


@pytest.mark.parametrize(("line", "problem"), REFUSED.items(), ids=["empty", "cut", "without a field", "with a wrong one"])
def test_what_is_no_document_is_refused(line: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        decode(line, Answer)


def test_a_worker_is_given_the_time_of_all_that_it_may_have_to_do() -> None:
    task, again = StateTask(state="s", pieces=()), StateTask(state="s", pieces=(), again=True)
    plain = Recipe(command=("x",), timeout_s=100.0)
    inspected = Recipe(command=("x",), timeout_s=100.0, inspect=("y",))
    warm = Recipe(command=("x",), timeout_s=100.0, recover="a:b")

    assert longest_s(plain, again) - longest_s(plain, task) == 100.0
    assert longest_s(inspected, task) - longest_s(plain, task) == 2 * INSPECT_S_MAX
    assert longest_s(warm, task) > longest_s(plain, task) + 100.0
