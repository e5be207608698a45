"""Faults above the lanes: requested, observed and, where they stand until then, healed; their moments go down through all lanes."""

from collections.abc import Iterable, Iterator, Sequence

from harness.report.strikes import Strike
from harness.report.timeline.rows import pack
from harness.report.timeline.scale import Scale
from harness.report.timeline.shapes import TOP_PX, WIDTH_PX, Label, Mark, Path, Shape, bar, number, text_width
from harness.report.wording import duration, moment

ROW_PX = 17.0
"""From one row of faults to the next."""


def draw_faults(strikes: Sequence[Strike], scale: Scale) -> tuple[list[Shape], float]:
    """The rows of faults, and where what is below them begins."""
    if not strikes:
        return [], TOP_PX
    rows = pack(_reach(strike, scale) for strike in strikes)
    shapes: list[Shape] = [Label(kind="name", x=scale.left - 10, y=TOP_PX + 11, text="faults", anchor="end")]
    for strike, row in zip(strikes, rows, strict=True):
        y = TOP_PX + row * ROW_PX + 7
        shapes += _spans(strike, scale, y)
        shapes += _marks(strike, scale, y)
        shapes.append(_label(strike, scale, y))
    return shapes, TOP_PX + (max(rows) + 1) * ROW_PX + 6


def draw_guides(strikes: Iterable[Strike], scale: Scale, bottom: float) -> Iterator[Shape]:
    """The moment of each fault, from above down to ``bottom``."""
    for strike in strikes:
        if scale.begin_s <= strike.requested_s <= scale.end_s:
            yield Path(kind="guide", d=f"M{number(scale.x(strike.requested_s))} {number(TOP_PX)}V{number(bottom)}")


def _reach(strike: Strike, scale: Scale) -> tuple[float, float]:
    """From the left edge of its first mark to the right edge of its last mark or its label."""
    label = _label(strike, scale, 0.0)
    width = text_width(label.text)
    begin, end = (label.x - width, label.x) if label.anchor == "end" else (label.x, label.x + width)
    return min(scale.x(strike.requested_s) - 5, begin), max(scale.x(strike.last_s) + 5, end) + 4


def _label(strike: Strike, scale: Scale, y: float) -> Label:
    """Its name, right of its effect where there is room, and what is wrong with it."""
    told = strike.injection
    if strike.observed_s is None:
        told += ": could not act" if strike.failed_s is not None else ": not observed"
    edge = scale.x(strike.requested_s if strike.observed_s is None else strike.observed_s) + 8
    if edge + text_width(told) < WIDTH_PX:
        return Label(kind="fault", x=edge, y=y + 3.5, text=told)
    return Label(kind="fault", x=scale.x(strike.requested_s) - 8, y=y + 3.5, text=told, anchor="end")


def _spans(strike: Strike, scale: Scale, y: float) -> Iterator[Shape]:
    """From the request to the effect, and on to the healing of a fault that stands."""
    if strike.observed_s is None:
        return
    observed = scale.x(strike.observed_s)
    if strike.stands and strike.healed_s is not None and strike.healed_s > strike.observed_s:
        title = f"{strike.injection} until healed at {moment(strike.healed_s)} s"
        yield bar("standing", observed, scale.x(strike.healed_s), y=y - 1.5, height=3, title=title)
    title = f"{strike.injection} observed {duration(strike.observed_s - strike.requested_s)} after the request"
    yield bar("landing", scale.x(strike.requested_s), observed, y=y - 3, height=6, title=title)


def _marks(strike: Strike, scale: Scale, y: float) -> Iterator[Shape]:
    moments = (("observed", strike.observed_s), ("healed", strike.healed_s if strike.stands else None), ("requested", strike.requested_s))
    for kind, t_s in moments:
        if t_s is not None and scale.begin_s <= t_s <= scale.end_s:
            yield Mark(kind=kind, x=scale.x(t_s), y=y, title=f"{strike.injection} {kind} at {moment(t_s)} s")
