"""What a fault hits, and whom."""

from typing import get_args

from harness.explore.states import Scope
from harness.scenario import Fault
from harness.scenario.cells import DEATH_SCOPES, HIT_SCOPES, Cell, attempt_class, hit_scope, whom


def test_what_ends_nothing_has_no_scope_and_what_only_asks_the_job_to_go_is_no_death():
    scopes = {str(kind.__struct_config__.tag): hit_scope(str(kind.__struct_config__.tag)) for kind in get_args(Fault)}

    assert {scopes[kind] for kind in ("kill", "end-grace", "kill-ray-process")} == {"process"}
    assert {scopes[kind] for kind in ("terminate", "maintenance", "expire-timeout")} == {"notice"}
    assert (scopes["lose-node"], scopes["lose-pool"], scopes["delete-pods"]) == ("node", "pool", "pod")
    assert not {scopes[kind] for kind in ("pause", "slow-writes", "flip-byte", "cordon-node", "overlap-attempts")} - {None}


def test_there_is_one_ladder_of_scopes_and_explorations_stand_on_it():
    assert DEATH_SCOPES == ("process", "sidecar", "pod", "node", "pool")
    assert ("notice", *DEATH_SCOPES) == HIT_SCOPES
    assert tuple(scope for scope in DEATH_SCOPES if scope in get_args(Scope)) == get_args(Scope)


def test_ranks_and_attempts_are_told_in_three_classes_each():
    assert [whom(rank) for rank in (-1, 0, 1, 7)] == ["all", "rank-0", "other-rank", "other-rank"]
    assert [attempt_class(attempt) for attempt in (0, 1, 2, 3)] == ["first", "second", "later", "later"]
    assert str(Cell("save", "process", "all", "first")) == "save x process x all x first attempt"
