import pytest

from harness.history import Done, LogLine, Restored, SigtermSeen, Started, StepDone
from harness.incidents.words import JobWords, WordReader, words_of
from harness.scenario import LogPatterns


def said(*texts: str, words: JobWords | None = None) -> list[tuple[str, int]]:
    reader = WordReader(words or JobWords())
    events = [event for number, text in enumerate(texts) for event in reader.read(LogLine(t_s=float(number), stream="stdout", text=text))]
    return [(type(event).__name__, getattr(event, "step", getattr(event, "restored_step", -1))) for event in events]


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("Step 7/100", [(StepDone, 7)]),
        ("[2026-03-01 12:00] step: 7 loss 0.1", [(StepDone, 7)]),
        ("Finished epoch 3", [(StepDone, 3)]),
        ("(RayTrainWorker pid=612, ip=10.4.0.9) Epoch 10: Loss 0.01", [(StepDone, 10)]),
        ("Received SIGTERM signal from platform. Initiating graceful shutdown...", [(SigtermSeen, -1)]),
        ("Resuming from checkpointed step 12.", [(Restored, 12), (Started, 12)]),
        ("No checkpoint found. Starting from scratch.", [(Started, 0)]),
        ("Completed 40 steps.", [(StepDone, 40), (Done, 40)]),
        ("Training Complete!", [(Done, 0)]),
        ("Starting step 7", []),
        ("Installed a handler of SIGTERM", []),
        ("Saving checkpoint every 5 steps", []),
        ("the next step 8 is larger", []),
        ("resume: nothing", []),
    ],
)
def test_lines_of_the_guides_are_understood(text, events):
    assert said(text) == [(kind.__name__, step) for kind, step in events]


def test_that_it_saves_is_no_promise_and_that_it_has_saved_is_one():
    assert said("Saving checkpoint at step 5...") == [("StepDone", 5), ("SaveBegun", 5)]
    assert said("Saved checkpoint at step 5") == [("StepDone", 5), ("SaveEnded", 5)]


def test_a_step_that_is_told_is_not_told_again_by_its_save():
    assert said("Step 5", "Saving checkpoint at step 5...", "Saved checkpoint at step 5") == [
        ("StepDone", 5),
        ("SaveBegun", 5),
        ("SaveEnded", 5),
    ]


def test_a_save_without_a_step_is_of_the_last_one_that_was_done():
    assert said("Step 7", "Saving checkpoint...") == [("StepDone", 7), ("SaveBegun", 7)]


def test_the_job_s_own_words_come_before_the_guides():
    words = words_of(LogPatterns(step=r"it (?P<step>\d+)", saved=r"ckpt (?P<step>\d+) done"), steps=9)

    assert said("it 3", "ckpt 3 done", "Step 4", words=words) == [("StepDone", 3), ("SaveEnded", 3)]
    assert said("Received SIGTERM", words=words) == [("SigtermSeen", -1)]
    assert words.are_own
    assert not words_of(LogPatterns(), steps=0).are_own


def test_a_step_of_a_thousand_digits_is_none():
    assert said(f"Step {'9' * 1000}", f"Saving checkpoint at step {'9' * 1000}...") == []
