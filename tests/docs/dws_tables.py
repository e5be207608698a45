"""Tables of docs/dws.md, made from the code and from the recorded run; ``python -m tests.docs.dws_tables`` writes them anew."""

import re
from collections.abc import Callable, Mapping, Sequence

from harness.targets.kubernetes.dws_reasons import FAILURES, STOCKOUT, explain_failure, quota_exceeded
from harness.targets.kubernetes.dws_states import FOLLOWERS, State
from harness.targets.kubernetes.pools import DWS_POOL
from tests.cluster.kueue_trials import CONTEXTS, Look, read_record
from tests.docs.pages import DOCS

PAGE = DOCS / "dws.md"
_PLACE = re.compile(r"(<!-- table: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def written_anew(page: str) -> str:
    """The page with its tables as code and record have them now."""
    return _PLACE.sub(lambda place: f"{place[1]}\n{TABLES[place['name']]()}\n\n{place[3]}", page)


def states_table() -> str:
    """What may follow each state."""
    rows = [(str(state), ", ".join(sorted(FOLLOWERS[state])) or "nothing") for state in State]
    return _table([("state", "what may follow"), *rows])


def reasons_table() -> str:
    """The words of each refusal."""
    waits = [("waits", one.reason, one.message) for one in (STOCKOUT, quota_exceeded(pool=DWS_POOL))]
    fails = [
        ("fails in the queue" if failure.is_accepted else "is never queued", reason, explain_failure(reason, pool=DWS_POOL).message)
        for reason, failure in FAILURES.items()
    ]
    return _table([("the request", "reason", "message"), *[(what, f"`{reason}`", message) for what, reason, message in [*waits, *fails]]])


def answers_table(context: str) -> str:
    """What Kueue says in a context after each sequence; elsewhere than in the first context only where it differs from that."""
    looks, usual = read_record().looks[context], read_record().looks["admitted"]
    chosen = [name for name in _in_order(looks) if context == "admitted" or looks[name] != usual[name]]
    return _table([("conditions, in order", "check", "its message", "workload"), *[_row(name, looks[name]) for name in chosen]])


def _in_order(looks: Mapping[str, Look]) -> list[str]:
    return sorted(looks, key=lambda name: (name.count(">"), name))


def _row(name: str, look: Look) -> Sequence[str]:
    states = name.split(">")
    shown = ["waits" if state == before else state for before, state in zip(["", *states], states, strict=False)]
    workload = ", ".join([*look.conditions, *([] if look.is_active else ["**deactivated**"])])
    return " → ".join(shown), " → ".join(look.checks), look.message, workload


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


TABLES: Mapping[str, Callable[[], str]] = {
    "dws-states": states_table,
    "dws-reasons": reasons_table,
    **{f"kueue-{context}": lambda context=context: answers_table(context) for context in CONTEXTS},
}


if __name__ == "__main__":
    PAGE.write_text(written_anew(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
