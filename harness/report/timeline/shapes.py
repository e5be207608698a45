"""What a picture is made of: shapes in pixels, drawn in order by ``timeline.svg.j2``; their looks are in the style sheet, by kind."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

CHARACTER_PX = 5.9
"""Mean width of a character of the labels; a little wide, so that what is thought to fit does."""

WIDTH_PX, LEFT_PX, RIGHT_PX, TOP_PX = 1120.0, 112.0, 92.0, 8.0
"""Of a whole picture, of the names on its left, of the ends of attempts on its right, of the margin above."""

BAR_PX_MIN = 2.0
"""A shorter bar would vanish; it is drawn this wide, and its title says the true length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A rectangle."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    title: str = ""
    form: Literal["bar"] = "bar"


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A line or an area; ``d`` as in SVG."""

    kind: str
    d: str
    title: str = ""
    form: Literal["path"] = "path"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A symbol at a moment; its form goes by its kind, so that it is told apart without its colour."""

    kind: str
    x: float
    y: float
    title: str
    form: Literal["mark"] = "mark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A short text; ``y`` is its baseline."""

    kind: str
    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    form: Literal["label"] = "label"


Shape = Bar | Path | Mark | Label


def text_width(text: str) -> float:
    """How wide a label will about be."""
    return CHARACTER_PX * len(text)


def bar(kind: str, begin: float, end: float, *, y: float, height: float, title: str = "", at_least: float = BAR_PX_MIN) -> Bar:
    """A rectangle between two places, however close they are."""
    return Bar(kind=kind, x=begin, y=y, width=max(end - begin, at_least), height=height, title=title)


def number(value: float) -> str:
    """A coordinate with no more digits than a screen shows."""
    return f"{value:.1f}".removesuffix(".0")


def ticks(places: Iterable[float], *, y: float, height: float) -> str:
    """Upright lines as one path."""
    return "".join(f"M{number(x)} {number(y)}v{number(height)}" for x in places)


def boxes(spans: Iterable[tuple[float, float]], *, y: float, height: float) -> str:
    """Rectangles as one path."""
    tall = number(height)
    return "".join(f"M{number(x)} {number(y)}h{number(end - x)}v{tall}h{number(x - end)}z" for x, end in spans)


def line(points: Iterable[tuple[float, float]]) -> str:
    """A line through points."""
    return "".join(f"{'L' if index else 'M'}{number(x)} {number(y)}" for index, (x, y) in enumerate(points))


def stair(points: Iterable[tuple[float, float]], *, end: float) -> str:
    """A line that keeps its height until the next point, and the last one to ``end``."""
    told: list[str] = []
    for x, y in points:
        told.append(f"H{number(x)}V{number(y)}" if told else f"M{number(x)} {number(y)}")
    return "".join([*told, f"H{number(end)}"]) if told else ""
