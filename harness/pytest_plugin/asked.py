"""What the command line of pytest asks for, in words of the harness."""

import ast
import functools
import itertools
import re
from pathlib import Path

import pytest

MARKER = "chaos"

_NAME = re.compile(r"(?<![\w:+\-.\[\]\\/])(?!(?:and|or|not)\b)(?P<name>[\w:+\-.\[\]\\/]+)(?:\s*\([^()]*=[^()]*\))?")
"""A mark in an expression, with its arguments."""


def is_asked_for(config: pytest.Config) -> bool:
    """Whether ``-m`` names chaos tests, and not only as what shall not run."""
    return _can_choose(str(config.getoption("-m", default="") or ""))


@functools.cache
def _can_choose(expression: str) -> bool:
    """Whether a mark expression names chaos tests and is true of any."""
    try:
        tree = ast.parse(_NAME.sub(lambda found: MARKER if found["name"] == MARKER else "_", expression), mode="eval")
        return any(isinstance(node, ast.Name) and node.id == MARKER for node in ast.walk(tree)) and True in _values(tree.body)
    except SyntaxError:  # pytest refuses it in a moment, with better words
        return False


def _values(node: ast.expr) -> frozenset[bool]:
    """What an expression can be for a chaos test, whatever other marks it has."""
    match node:
        case ast.BoolOp(op=operator, values=parts):
            join = all if isinstance(operator, ast.And) else any
            return frozenset(join(values) for values in itertools.product(*map(_values, parts)))
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return frozenset(not value for value in _values(part))
        case ast.Name(id=name):
            return frozenset({True}) if name == MARKER else frozenset({True, False})
        case _:
            raise SyntaxError(ast.dump(node))


def is_that_file(config: pytest.Config, argument: str, path: Path) -> bool:
    """Whether an argument of the command line names a test of a file: by its path, with ``--pyargs`` by its module, or by none."""
    file, _, _ = argument.partition("::")
    if not file or (config.invocation_params.dir / file).resolve() == path:
        return True
    module = tuple(file.split("."))
    return bool(config.getoption("pyargs")) and path.with_suffix("").parts[-len(module) :] == module


def target_asked_for(config: pytest.Config) -> str:
    """The name of the target."""
    return str(config.getoption("--target"))


def seed_asked_for(config: pytest.Config) -> int:
    """The seed of workloads and schedules."""
    return int(config.getoption("--seed"))


def runs_dir_asked_for(config: pytest.Config) -> Path:
    """Where run directories are made, wherever the process goes."""
    return Path(config.getoption("--runs-dir")).resolve()


def is_to_be_kept(config: pytest.Config) -> bool:
    """Whether checkpoint directories of valid runs stay too."""
    return bool(config.getoption("--keep"))
