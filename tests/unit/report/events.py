"""Any events at all: wild ones whose fields may hold anything, and tame ones that lie so close together that they meet."""

from typing import get_args

import msgspec
from hypothesis import strategies as st

from harness.history import AnyEvent, AttemptExited, CheckpointSeen, CheckpointsSeen, ConditionState, Event, NodeSeen
from tests.unit.strategies import instances

KINDS: tuple[type[Event], ...] = get_args(AnyEvent)

_TAME: dict[str, st.SearchStrategy[object]] = {
    "t_s": st.floats(0, 20),
    "task": st.integers(0, 1),
    "attempt": st.integers(0, 2),
    "rank": st.integers(-1, 1),
    "step": st.integers(-1, 9),
    "restored_step": st.integers(0, 9),
    "steps": st.integers(0, 9),
    "injection": st.sampled_from(["1-kill", "2-pause"]),
    "fault": st.sampled_from(["kill", "pause", "flip-byte", "maintenance"]),
    "signal": st.sampled_from(["SIGTERM", "SIGKILL", "SIGSTOP", "SIGCONT"]),
    "grace_s": st.floats(0, 10),
    "quiet_s": st.floats(0, 10),
    "uid": st.sampled_from(["a", "b"]),
    "pool": st.sampled_from(["", "on-demand-pool", "dws-pool"]),
    "node": st.sampled_from(["", "node-1", "node-2"]),
    "flavors": st.dictionaries(st.sampled_from(["main", "head"]), st.sampled_from(["on-demand", "dws"]), max_size=2),
    "conditions": st.lists(
        instances(
            ConditionState,
            {
                "type": st.sampled_from(["QuotaReserved", "Admitted", "Evicted", "Requeued", "Finished", "Provisioned"]),
                "status": st.sampled_from(["True", "False"]),
            },
        ),
        max_size=4,
    ).map(tuple),
}
"""Few names and moments, so that events speak of the same things."""


def _tame(kind: type[Event]) -> st.SearchStrategy[Event]:
    names = {field.name for field in msgspec.structs.fields(kind)}
    fields = {name: values for name, values in _TAME.items() if name in names}
    if kind is AttemptExited:
        fields["signal"] = st.sampled_from([None, 9, 15, 1000])
    if kind is NodeSeen:
        fields["name"] = st.sampled_from(["node-1", "node-2"])
    if kind is CheckpointsSeen:
        fields["checkpoints"] = st.lists(instances(CheckpointSeen, {"step": st.integers(-1, 9)}), max_size=3).map(tuple)
    return instances(kind, fields)


WILD = st.lists(st.one_of([instances(kind) for kind in KINDS]), max_size=12)
TAME = st.lists(st.one_of([_tame(kind) for kind in KINDS]), max_size=40)
