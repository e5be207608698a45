"""What somebody has typed, as a command to type again: a plan names the command that applies it, and that must work as it stands."""

import shlex
from collections.abc import Collection, Iterator, Sequence

import typer


def said_again(context: typer.Context, *, without: Collection[str], adding: Sequence[str] = ()) -> str:
    """The command line of a command with what was typed for it, but for some of its parameters, and with others; quoted as for a shell.

    What stands in variables is left out: it stands there still.

    Args:
        context: Of the command.
        without: Names of parameters.
        adding: Words that come before the arguments.
    """
    options: list[str] = []
    arguments: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name in without or source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
        if parameter.param_type_name == "argument":
            arguments += _each(value)
        elif getattr(parameter, "is_flag", False):
            options += parameter.opts[:1] if value else parameter.secondary_opts[:1]
        else:
            options += [word for each in _each(value) for word in (parameter.opts[0], each)]
    separator = ["--"] if any(word.startswith("-") for word in arguments) else []
    return shlex.join([*context.command_path.split(), *options, *adding, *separator, *arguments])


def _each(value: object) -> Iterator[str]:
    """The values of a parameter that may be given several times, or its one."""
    yield from map(str, value) if isinstance(value, list | tuple) else [str(value)]
