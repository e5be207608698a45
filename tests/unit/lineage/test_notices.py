"""Notice as pods get it."""

from harness.lineage import Notice, trace
from tests.unit.checkers.cluster_builders import ClusterRun


def notice(run: ClusterRun) -> Notice | None:
    return trace(run.history().events).attempts_of(0)[0].notice()


def running() -> ClusterRun:
    run = ClusterRun().node()
    run.attempt(0)
    return run.pod()


def test_a_terminating_pod_has_notice_with_its_own_grace():
    run = running()
    sent_s = run.t_s + 0.1
    run.pod(is_terminating=True, grace_s=15.0).pod(is_terminating=True, grace_s=15.0).exit(143, cause="platform")
    assert notice(run) == Notice(t_s=sent_s, cause="platform", grace_s=15.0)


def test_a_pod_that_is_removed_at_once_or_whose_node_is_gone_has_none():
    assert notice(running().pod(is_terminating=True, grace_s=0.0).exit(137, cause="fault")) is None
    assert notice(running().node(state="Unknown").pod(is_terminating=True, grace_s=30.0).exit(137, cause="fault")) is None


def test_all_hosts_must_have_it():
    run = running().pod("pod-1", rank=1).pod(is_terminating=True, grace_s=30.0)
    assert notice(run.fork().exit(1)) is None
    assert notice(run.pod("pod-1", rank=1, is_terminating=True, grace_s=20.0).exit(1)).grace_s == 20.0


def test_of_the_pods_of_a_rank_the_last_one_counts():
    run = running().pod(is_terminating=True, grace_s=30.0).pod("pod-0b")
    assert notice(run.fork().exit(0)) is None
    assert notice(run.pod(is_terminating=True, grace_s=30.0).exit(0)) is None
    assert notice(run.fork().exit(0)) is None


def test_what_comes_when_the_attempt_is_over_or_when_we_end_the_run_is_none():
    assert notice(running().exit(0).pod(is_terminating=True, grace_s=30.0)) is None
    assert notice(running().pod(is_terminating=True, grace_s=30.0).exit(143, cause="stop")) is None


def test_a_signal_that_was_seen_is_the_notice():
    run = running().signal("SIGTERM", cause="fault")
    sent_s = run.t_s
    run.pod(is_terminating=True, grace_s=15.0).exit(143, cause="fault")
    assert notice(run) == Notice(t_s=sent_s, cause="fault")


def test_a_job_that_was_done_had_no_notice():
    run = running()
    run.boot().start(20).done()
    assert notice(run.pod(is_terminating=True, grace_s=30.0).exit(0)) is None


def test_a_node_that_goes_within_the_grace_has_taken_it():
    run = running().pod(is_terminating=True, grace_s=10.0)
    assert notice(run.fork().node("node-2", state="Deleted").exit(143, cause="platform")) is not None
    assert notice(run.fork().node(state="Deleted").exit(137, cause="fault")) is None
    assert notice(run.pod(is_terminating=True, grace_s=10.0, exit_code=143).node(state="Deleted").exit(143, cause="platform")) is not None
