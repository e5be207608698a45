"""Jobs that are wrong in one known way each: the harness has to find every one of them.

Each is the right job of ``workloads/linear`` with the one wrong thing overridden, and runs as ``python -m workloads.broken.<name>``.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class BrokenJob:
    """What is known of a broken job.

    Attributes:
        cases: numbers of the public reports that the job rebuilds, listed with their links in the job's docstring.
        promise: the promise that it breaks, by the name of the expectation that must say so.
        fault: the smallest disturbance that reveals it.
    """

    cases: tuple[int, ...]
    promise: str
    fault: str


BROKEN = {
    "async_save_without_drain": BrokenJob((16,), "completes", "none"),
    "crash_loop": BrokenJob((17,), "makes-progress", "none"),
    "crashes_on_stale_lock": BrokenJob((36,), "within-retries", "kill at a step"),
    "crashes_on_stale_temporary": BrokenJob((9,), "makes-progress", "kill after save.write"),
    "data_order_wrong_on_second_resume": BrokenJob((19,), "exactly-once-data", "kill in two attempts, each after a save of its own"),
    "deletes_old_before_new": BrokenJob((13,), "intact-checkpoints", "kill after the second save.begin"),
    "exits_zero_on_sigterm": BrokenJob((16,), "exit-codes", "terminate at a step"),
    "forgets_average": BrokenJob((23,), "same-result", "kill after a save"),
    "forgets_optimizer": BrokenJob((23, 26), "bit-exact-resume", "kill after a save"),
    "forgets_rng": BrokenJob((23,), "bit-exact-resume", "kill after a save"),
    "ignores_sigterm": BrokenJob((33,), "grace-conduct", "terminate at a step"),
    "keeps_log_in_memory": BrokenJob((), "log-order", "kill at a step"),
    "latest_before_data": BrokenJob((13,), "resumes-from-newest-durable", "kill after the second save.begin"),
    "latest_names_a_path": BrokenJob((), "resumes-from-newest-durable", "kill after the second save.begin"),
    "names_its_run_by_time": BrokenJob((41,), "same-run", "kill after a save"),
    "off_by_one_on_resume": BrokenJob((23,), "resumes-from-newest-durable", "kill after a save"),
    "picks_incomplete_checkpoint": BrokenJob((1, 12), "intact-checkpoints", "kill after a save.write of the second save"),
    "rank_hangs": BrokenJob((34,), "no-hang", "none"),
    "ranks_restore_different_steps": BrokenJob((13,), "ranks-agree", "kill all ranks after the second save.latest"),
    "reads_flag_between_long_steps": BrokenJob((31,), "grace-conduct", "terminate at a step, the steps being longer than the grace period"),
    "renames_without_fsync": BrokenJob((14,), "intact-checkpoints", "loss of the node after a save; no kill of the process reveals it"),
    "restarts_data_order": BrokenJob((19,), "exactly-once-data", "kill after a save"),
    "restores_damaged_bytes": BrokenJob((), "intact-checkpoints", "flip a byte of the newest arrays.bin between two attempts"),
    "saves_in_place": BrokenJob((14,), "intact-checkpoints", "kill after the second save.write"),
    "saves_nothing": BrokenJob((), "resumes-from-newest-durable", "kill at a step"),
    "skips_epoch_at_boundary": BrokenJob((25,), "completes", "kill after a save at the end of an epoch (every 10 steps)"),
    "skips_saves_after_resume": BrokenJob((1,), "saves-at-cadence", "kill after save.commit, before the rename"),
    "stale_learning_rate": BrokenJob((26,), "bit-exact-resume", "kill after a save"),
    "stalls_in_saves": BrokenJob((), "goodput", "none"),
    "starts_from_scratch": BrokenJob((41,), "resumes-from-newest-durable", "kill after a save"),
    "swallows_save_error": BrokenJob((5,), "completes", "no space left during the last save"),
    "two_writers": BrokenJob((36, 42), "single-writer", "start the next attempt while the first still writes"),
}
