"""What lies above a lane: signals and words of the job at their moments, with as many of their labels as there is room for."""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.report.timeline.rows import pack
from harness.report.timeline.scale import Scale
from harness.report.timeline.shapes import text_width
from harness.report.timeline.tracks import Period, Track
from harness.report.wording import duration, moment

MARKERS_MAX = 200
"""Markers of one lane that are looked at for labels; there is room for a few dozen."""

_SIGNALS = {"SIGTERM": "TERM", "SIGKILL": "KILL", "SIGSTOP": "STOP", "SIGTSTP": "TSTP", "SIGCONT": "CONT", "SIGINT": "INT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A symbol with a label that may be empty; one of the kind ``word`` is nothing without its label."""

    kind: str
    x: float
    title: str
    label: str


def arrange(
    track: Track, scale: Scale, *, grace_ends_s: float | None, rows_max: int, names_everything: bool
) -> tuple[tuple[Symbol, int], ...]:
    """The symbols of a track inside the scale, each with its row, so that no label touches another; words that find no row are left out.

    Args:
        track: Whose.
        scale: The axis.
        grace_ends_s: When its grace period is over; None where it had none.
        rows_max: Rows there may be.
        names_everything: Whether saves and markers are named, as in close-ups.
    """
    everything = list(_symbols(track, scale, names_everything=names_everything))
    if grace_ends_s is not None:
        title = f"the grace period ends at {moment(grace_ends_s)} s"
        everything.append((grace_ends_s, Symbol(kind="word", x=scale.x(grace_ends_s), title=title, label="grace ends")))
    found = [symbol for t_s, symbol in everything if scale.begin_s <= t_s <= scale.end_s]
    rows = pack((symbol.x - 5, symbol.x + 10 + text_width(symbol.label)) for symbol in found)
    placed = [(symbol, row) for symbol, row in zip(found, rows, strict=True) if row < rows_max or symbol.kind != "word"]
    return tuple((symbol, min(row, rows_max - 1)) for symbol, row in placed)


def save_title(save: Period) -> str:
    """A save in words."""
    if save.end_s is None:
        return f"save of step {save.step} begun at {moment(save.begin_s)} s and never acknowledged"
    return f"save of step {save.step} from {moment(save.begin_s)} s, acknowledged after {duration(save.end_s - save.begin_s)}"


def _symbols(track: Track, scale: Scale, *, names_everything: bool) -> Iterator[tuple[float, Symbol]]:
    def symbol(kind: str, t_s: float, title: str, label: str = "") -> tuple[float, Symbol]:
        return t_s, Symbol(kind=kind, x=scale.x(t_s), title=f"{title} at {moment(t_s)} s", label=label)

    for sent in track.signals():
        name = _SIGNALS.get(sent.signal, sent.signal)
        kind = {"TERM": "term", "KILL": "kill"}.get(name, "signal")
        yield symbol(kind, sent.t_s, f"{sent.signal} (cause: {sent.cause})", name)
    for seen in track.notices_seen():
        yield symbol("seen", seen.t_s, "the job noticed SIGTERM", "seen" if names_everything else "")
    for done in track.ends_said():
        yield symbol("done", done.t_s, f"the job said that it is done with step {done.step}", "done" if names_everything else "")
    for restore in track.restores():
        loaded_s = restore.begin_s if restore.end_s is None else restore.end_s
        yield symbol("restored", loaded_s, f"restore of step {restore.step}", f"restore {restore.step}")
    if names_everything:
        for save in track.saves():
            yield save.begin_s, Symbol(kind="word", x=scale.x(save.begin_s), title=save_title(save), label=f"save {save.step}")
        for said in track.markers()[:MARKERS_MAX]:
            yield symbol("word", said.t_s, f"marker {said.name}", said.name[:40])
