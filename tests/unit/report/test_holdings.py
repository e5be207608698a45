"""What storage held when the run was over."""

from dataclasses import replace

from harness.checkpoints import ManifestEntry
from harness.history import CheckpointSeen, CheckpointsSeen
from harness.report.holdings import FILES_MAX, ROWS_MAX, files_of, holdings_of
from harness.report.page import page_of
from tests.unit.checkers.builders import Run, resumed
from tests.unit.report.records import bare, record_of
from tests.unit.report.test_page import words


def test_the_last_look_at_all_of_storage_counts_the_newest_first():
    (holding,) = holdings_of(record_of(resumed()))

    assert [checkpoint.step for checkpoint in holding.checkpoints] == [20, 15]


def test_a_look_at_one_checkpoint_alone_is_not_taken_for_all_of_storage():
    seen = CheckpointsSeen(t_s=1.0, occasion="save-end", checkpoints=(), is_whole=False)

    assert holdings_of(bare(seen)) == ()


def test_storage_without_checkpoints_is_one_sentence_and_no_table():
    def seen(task: int, *checkpoints: CheckpointSeen) -> CheckpointsSeen:
        return CheckpointsSeen(t_s=1.0, task=task, occasion="end", checkpoints=checkpoints)

    whole = CheckpointSeen(step=5, path="step_5", state="committed")
    empty, mixed, one = (words(page_of(bare(*looks))) for looks in ([seen(0), seen(1)], [seen(0, whole), seen(1)], [seen(0)]))

    assert "offered next" not in empty
    assert "There was no checkpoint of any task." in empty
    assert mixed.count("offered next") == 1
    assert "There was none of task 1." in mixed
    assert "There was no checkpoint." in one


def test_a_crowd_of_checkpoints_is_cut_and_counted():
    crowd = tuple(CheckpointSeen(step=step, path=f"step_{step}", state="committed") for step in range(ROWS_MAX + 5))

    (holding,) = holdings_of(bare(CheckpointsSeen(t_s=1.0, occasion="end", checkpoints=crowd)))

    assert (len(holding.checkpoints), holding.left_out) == (ROWS_MAX, 5)
    assert holding.checkpoints[0].step == ROWS_MAX + 4


def test_the_content_ledger_is_counted_and_its_beginning_shown():
    entries = tuple(ManifestEntry(f"f{number:03}", 10, "" if number == 3 else "ab") for number in range(FILES_MAX + 2))

    files = files_of(replace(record_of(Run()), manifest=entries))

    assert files is not None
    assert (files.count, files.size_bytes, files.unread, len(files.first)) == (FILES_MAX + 2, 10 * (FILES_MAX + 2), 1, FILES_MAX)


def test_without_a_content_ledger_there_is_nothing_to_count():
    assert files_of(record_of(Run())) is None
