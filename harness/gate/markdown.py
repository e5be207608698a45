"""The judgement of a gate as Markdown, short enough for a comment on a pull request: what fails on top, what others wrote as code."""

from collections.abc import Iterator, Sequence
from typing import Final

from harness.gate.figures import FIGURE_NAMES, KINDS, FigureName, told, told_change, told_figure
from harness.gate.judging import Judged, JudgedFigure, JudgedScenario, Ruling
from harness.gate.result import Accepted, Measured
from harness.report.text import clean
from harness.verdict import counted

COMMENT_MAX: Final = 65_536
"""Characters of a comment on GitHub; counted here in bytes, so that it holds however they are counted there.

Source: the API's answer to a longer one, "Body is too long (maximum is 65536 characters)".
"""

ROOM: Final = 4_000
"""Bytes that are left for what somebody puts around it."""

REASONS_MAX = 8
"""Of one scenario."""

REASON_MAX = 400
"""Characters of one reason; the whole of it is in ``gate.json``."""

SECTIONS: tuple[tuple[Ruling, str], ...] = (("fail", "What fails"), ("unknown", "What is unknown"))

HEADING: Final = "## The release gate "
"""Every summary begins with it."""

WORDS: dict[Ruling, str] = {"pass": "passes", "unknown": "is unknown", "fail": "**fails**"}


def write_markdown(measured: Measured, judged: Judged, accepted: Accepted | None) -> str:
    """The summary; scenarios that have no room are counted."""
    head = [f"{HEADING}{WORDS[judged.ruling]} on target {_code(measured.target)}", "", _counts(measured, judged, accepted), ""]
    head += [f"- **unknown**: {_plain(reason)}" for reason in judged.reasons]
    head += [f"- {_plain(note)}" for note in judged.notes]
    ordered = sorted(judged.scenarios, key=lambda scenario: ("fail", "unknown", "pass").index(scenario.ruling))
    blocks = [block for ruling, title in SECTIONS for block in _section(title, [each for each in ordered if each.ruling == ruling])]
    rows = [_row(scenario) for scenario in ordered]
    room = COMMENT_MAX - ROOM - _size("\n".join([*head, *_table_head()]))
    shown_blocks = _fitting(blocks, room * 2 // 3)
    told_rows = _fitting(rows, room - sum(_size(block) for block in shown_blocks))
    parts = [*head, *shown_blocks, *_left(len(blocks) - len(shown_blocks), "entry", "entries"), "", *_table_head(), *told_rows]
    return "\n".join([*parts, *_left(len(rows) - len(told_rows), "scenario", "scenarios")]) + "\n"


def write_without_result(why: str) -> str:
    """The summary of a gate that has judged nothing."""
    return f"{HEADING}**has no result**\n\nNothing was judged: {_code(why)}\n"


def _counts(measured: Measured, judged: Judged, accepted: Accepted | None) -> str:
    rulings = [scenario.ruling for scenario in judged.scenarios]
    told_rulings = ", ".join(f"{rulings.count(name)} {name}" for name in ("fail", "unknown", "pass") if name in rulings)
    compared = "compared with nothing"
    if accepted is not None and any(each.accepted is not None for scenario in judged.scenarios for each in scenario.figures.values()):
        of = f" of commit {_code(accepted.commit[:12])}" if accepted.commit else ""
        compared = f"compared with the result accepted on {_code(accepted.made_at[:10])}{of}"
    return f"{counted(len(rulings), 'scenario')}: {told_rulings or 'none'}; {compared}; {measured.duration_s:.0f} s."


def _section(title: str, scenarios: Sequence[JudgedScenario]) -> Iterator[str]:
    for number, scenario in enumerate(scenarios):
        heading = "" if number else f"\n### {title}\n\n"
        reasons = [f"  - {_code(reason)}" for reason in scenario.reasons[:REASONS_MAX]]
        more = [f"  - and {len(scenario.reasons) - REASONS_MAX} more"] * (len(scenario.reasons) > REASONS_MAX)
        yield heading + "\n".join([f"- {_code(scenario.name)}", *reasons, *more])


def _table_head() -> list[str]:
    labels = ["", "scenario", "verdict", *(KINDS[name].label for name in FIGURE_NAMES)]
    return [f"| {' | '.join(labels)} |", f"|{' --- |' * 3}{' ---: |' * len(FIGURE_NAMES)}"]


def _row(scenario: JudgedScenario) -> str:
    cells = [scenario.ruling, _code(scenario.name), str(scenario.verdict), *(_cell(name, scenario.figures[name]) for name in FIGURE_NAMES)]
    return f"| {' | '.join(cells)} |"


def _cell(name: FigureName, judged: JudgedFigure) -> str:
    """The figure, and what it was accepted as; what does not pass is bold."""
    text = told_figure(name, judged.figure)
    text = f"**{text}**" if judged.ruling != "pass" else text
    if judged.accepted is None:
        return text
    change = f", {told_change(name, judged.change)}" if judged.change is not None else ""
    return f"{text} (accepted {told(name, judged.accepted)}{change})"


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    """As many of the first lines as there is room for."""
    shown: list[str] = []
    for line in lines:
        room -= _size(line)
        if room < 0:
            break
        shown.append(line)
    return shown


def _left(count: int, noun: str, plural: str) -> list[str]:
    return [f"\n… {counted(count, f'more {noun}', f'more {plural}')}, in `gate.json`"] if count > 0 else []


def _size(text: str) -> int:
    return len(text.encode()) + 1


def _code(text: str) -> str:
    """What others wrote, as code: it makes no heading, no link, no image, calls nobody by name, and ends no cell of a table."""
    line = clean(" ".join(text.split()), REASON_MAX).replace("`", "'").replace("|", "¦")
    return f"`{line or ' '}`"


def _plain(text: str) -> str:
    """Our own sentence; what others wrote stands in it between backticks (``quoted``), as code, and nothing else is markup."""
    line = clean(" ".join(text.split()), REASON_MAX)
    return "".join(_escaped(part) if number % 2 == 0 else f"`{part}`" for number, part in enumerate(line.split("`")))


def _escaped(text: str) -> str:
    """A zero-width space after ``@`` makes it a letter that calls nobody."""
    return "".join(f"\\{letter}" if letter in "\\*_{}[]<>#|!~&" else letter for letter in text).replace("@", "@\u200b")
