"""Tables of the manual that are made from the code; ``python -m tests.docs.tables`` writes them anew.

In a page a table stands between ``<!-- table: name -->`` and ``<!-- end -->``.
"""

import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Union, cast, get_args, get_origin, get_type_hints

import msgspec
import pytest

from harness.config import ChaosTable, DockerTable, GcpLimitsTable, GcpTable, JobTable, PromisesTable, ScenarioTable
from harness.gate.document import BudgetTable, GateTable, RegressionTable, ThresholdsTable, Tolerance
from harness.gate.document import ScenarioTable as GateScenarioTable
from harness.pytest_plugin.declarations import pytest_addoption
from harness.scenario import (
    Cluster,
    Expectation,
    Fault,
    Injection,
    LogPatterns,
    Outside,
    Phase,
    Platform,
    PoolAnswer,
    ProvisioningScript,
    Scenario,
    Trigger,
    Victim,
    Workload,
    cluster_faults,
    faults,
)
from harness.scenario.faults import PathClass
from tests.docs.google_tables import bound_rows, fault_rows, permission_rows

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = (
    "own-job.md",
    "own-cluster-job.md",
    "scenarios.md",
    "pytest.md",
    "explore.md",
    "reproduce.md",
    "emulator.md",
    "google-cloud.md",
    "gate.md",
)

WORDS: Mapping[type, str] = {int: "integer", float: "number", str: "text", bool: "true or false"}
_PLACE = re.compile(r"(<!-- table: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_ATTRIBUTE = re.compile(r"^    (?P<names>[a-z_]+(?:, [a-z_]+)*): (?P<text>.*)$")


def written_anew(page: str) -> str:
    """A page with its tables as the code has them now."""
    return _PLACE.sub(lambda place: f"{place[1]}\n{TABLES[place['name']]()}\n\n{place[3]}", page)


def tables_in(page: str) -> list[str]:
    """The names of the tables that a page shows."""
    return [place["name"] for place in _PLACE.finditer(page)]


# ---- rows ------------------------------------------------------------------------------------------------------------


def kinds_table(union: object, *, module: types.ModuleType | None = None) -> str:
    """One row a member of a tagged union, or of those that a module has: its type, its fields, what it is."""
    rows = [("`type`", "fields", "what it is")]
    for kind in get_args(union):
        if module is not None and kind.__module__ != module.__name__:
            continue
        fields = "<br>".join(_field(kind, field) for field in msgspec.structs.fields(kind))
        rows.append((f"`{kind.__struct_config__.tag}`", fields, _prose(_paragraphs(kind))))
    return _table(rows)


def fields_table(kind: type[msgspec.Struct], *described: type[msgspec.Struct]) -> str:
    """One row a field of a struct; what it is for is looked up in the docstrings of the struct and of ``described``."""
    meanings = {name: text for source in (*reversed(described), kind) for name, text in _attributes(source).items()}
    rows = [("key", "value", "meaning")]
    rows += [
        (f"`{field.name}`", _value(kind, field), _prose([meanings[field.name]]) if field.name in meanings else "")
        for field in msgspec.structs.fields(kind)
    ]
    return _table(rows)


def options_table() -> str:
    """One row an option that the plugin gives to pytest."""
    options = _Options()
    pytest_addoption(cast("pytest.Parser", options))
    return _table([("option", "meaning"), *options.rows])


class _Options:
    """Takes options as pytest's parser does, and keeps their rows."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str]] = []

    def getgroup(self, _name: str, _description: str) -> "_Options":
        return self

    def addoption(self, name: str, *, help: str, action: str = "", **_more: object) -> None:  # noqa: A002  argparse's own word
        self.rows.append((f"`{name}`" if action == "store_true" else f"`{name} …`", help))


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _field(kind: type[msgspec.Struct], field: msgspec.structs.FieldInfo) -> str:
    return f"`{field.name}`: {_value(kind, field)}"


def _value(kind: type[msgspec.Struct], field: msgspec.structs.FieldInfo) -> str:
    annotation = get_type_hints(kind)[field.name]
    if field.required:
        return f"{_words(annotation)}, required"
    default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    is_told_elsewhere = any(isinstance(one, msgspec.Struct) for one in (default if isinstance(default, tuple) else (default,)))
    shown = "" if is_told_elsewhere or default in (None, "", (), {}) else f" = `{_literal(default)}`"
    return f"{_words(annotation)}{shown}"


def _literal(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _words(annotation: object) -> str:
    """A type in the words of TOML and JSON."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and annotation in WORDS:
        return WORDS[annotation]
    if annotation in NAMED:
        return NAMED[annotation]
    if origin is Literal:
        return " or ".join(f"`{_literal(argument)}`" for argument in arguments)
    if origin is tuple:
        return f"list of {_words(arguments[0])}"
    if origin is dict:
        return "table of text"
    if origin in (Union, types.UnionType):
        return " or ".join(_words(argument) for argument in arguments if argument is not type(None))
    raise TypeError(f"no words for {annotation!r}")


NAMED: Mapping[object, str] = {
    Cluster: "cluster",
    Phase: "phase",
    PoolAnswer: "answer",
    ProvisioningScript: "script",
    Expectation: "expectation",
    Injection: "injection",
    LogPatterns: "table",
    Outside: "table",
    Platform: "table",
    Victim: "victim",
    Workload: "workload",
    Fault: "fault",
    Trigger: "trigger",
    PathClass: "path class",
    GcpLimitsTable: "table",
    ThresholdsTable: "table",
    RegressionTable: "table",
    Tolerance: "table",
}


# ---- docstrings ------------------------------------------------------------------------------------------------------


def _paragraphs(kind: type) -> list[str]:
    """The paragraphs of a docstring, without its sections."""
    text = inspect.getdoc(kind) or ""
    return re.split(r"\n\n", re.split(r"\n+(?:Attributes|Raises|Source):", text)[0])


def _attributes(kind: type) -> dict[str, str]:
    """What the ``Attributes`` section of a docstring says of each name; names that share a line share what it says."""
    _, _, section = (inspect.getdoc(kind) or "").partition("Attributes:\n")
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        match = _ATTRIBUTE.match(line)
        if match:
            names = match["names"].split(", ")
            found |= dict.fromkeys(names, match["text"])
        elif line.startswith("     "):
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
        elif line.strip():
            break
    return found


def _prose(paragraphs: Sequence[str]) -> str:
    """Docstrings as Markdown on one line; they write ``code`` with two backquotes, Markdown with one."""
    return " ".join(" ".join(paragraphs).replace("``", "`").split())


TABLES: Mapping[str, Callable[[], str]] = {
    "faults": lambda: kinds_table(Fault, module=faults),
    "cluster-faults": lambda: kinds_table(Fault, module=cluster_faults),
    "triggers": lambda: kinds_table(Trigger),
    "expectations": lambda: kinds_table(Expectation),
    "scenario": lambda: fields_table(Scenario),
    "injection": lambda: fields_table(Injection),
    "victim": lambda: fields_table(Victim),
    "workload": lambda: fields_table(Workload),
    "cluster": lambda: fields_table(Cluster),
    "phase": lambda: fields_table(Phase),
    "answer": lambda: fields_table(PoolAnswer),
    "toml-workload": lambda: fields_table(JobTable, Workload, Outside),
    "toml-logs": lambda: fields_table(LogPatterns),
    "toml-platform": lambda: fields_table(Platform),
    "toml-docker": lambda: fields_table(DockerTable),
    "toml-promises": lambda: fields_table(PromisesTable),
    "toml-chaos": lambda: fields_table(ChaosTable),
    "pytest-options": options_table,
    "toml-gcp": lambda: fields_table(GcpTable),
    "toml-gcp-limits": lambda: fields_table(GcpLimitsTable),
    "gcp-faults": lambda: _table(list(fault_rows())),
    "gcp-permissions": lambda: _table(list(permission_rows())),
    "gcp-bounds": lambda: _table(list(bound_rows())),
    "toml-scenarios": lambda: fields_table(ScenarioTable, Scenario),
    "toml-gate": lambda: fields_table(GateTable),
    "toml-gate-budget": lambda: fields_table(BudgetTable),
    "toml-gate-thresholds": lambda: fields_table(ThresholdsTable),
    "toml-gate-regression": lambda: fields_table(RegressionTable),
    "toml-gate-tolerance": lambda: fields_table(Tolerance),
    "toml-gate-scenarios": lambda: fields_table(GateScenarioTable),
}


def _pages() -> Iterator[Path]:
    yield from (DOCS / name for name in PAGES)


if __name__ == "__main__":
    for path in _pages():
        path.write_text(written_anew(path.read_text(encoding="utf-8")), encoding="utf-8")
