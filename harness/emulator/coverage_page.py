"""The coverage of the emulator as the page docs/emulator-coverage.md."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from harness.emulator.coverage import CLIENTS, Coverage, MethodCoverage, UserCoverage
from harness.emulator.run.fidelity import FIDELITY

INTRODUCTION = """# What the emulator covers

Made by `harness emulate --coverage`, from the code and from the lists of methods that Google's clients bring; a test holds this page
to it. What is listed as spoken is answered by the service's rules, as far as [the emulator's page](emulator.md) says; all else is
answered UNIMPLEMENTED over gRPC and NOT_FOUND over REST. A row marked *unverified* was not found in a source for this very case."""


def coverage_page(found: Coverage) -> str:
    """The whole page."""
    lines = [INTRODUCTION, "", "## Cloud Run, row by row", "", *_fidelity_table(), "", "## Methods of the clients", ""]
    for client in CLIENTS:
        lines += _client_table(client, [row for row in found.methods if row.client == client])
    lines += ["Cloud Logging over REST:", ""]
    lines += [f"- `{name}`" for name in found.routes if name.startswith("logging.")]
    lines += ["", "## Cloud Storage", "", "Its client brings no list. Over REST there are these methods:", ""]
    lines += [f"- `{name}`" for name in found.routes if name.startswith("storage.")]
    lines += ["", "Each of these public methods was called, and made these calls:", "", *_storage_table(found.storage), ""]
    lines += [f"Not called: {_names(found.untried)}.", "", "## The emulator itself", ""]
    lines += ["Its own methods, below `/_emulator/v1/`:", ""]
    lines += [f"- `{name.removeprefix('emulator.')}`" for name in found.routes if name.startswith("emulator.")]
    return "\n".join([*lines, ""])


def _fidelity_table() -> Iterator[str]:
    yield "| behaviour | here | what differs, and what cannot be concluded |"
    yield "| --- | --- | --- |"
    for row in FIDELITY:
        yield f"| {row.what} | {row.here}{'' if row.verified else ', *unverified*'} | {row.note} |"


def _client_table(client: str, rows: Sequence[MethodCoverage]) -> list[str]:
    """Services of which nothing is spoken are counted only: of Compute Engine there are more than a hundred."""
    covered: defaultdict[str, list[str]] = defaultdict(list)
    left: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        (covered if row.is_covered else left)[row.service].append(row.method)
    lines = [f"`google.cloud.{client}`", "", "| service | spoken | not spoken |", "| --- | --- | --- |"]
    lines += [f"| `{service}` | {_names(covered[service])} | {_names(left[service]) or 'none'} |" for service in covered]
    others = sorted(set(left) - set(covered))
    if others:
        lines += ["", f"Not spoken at all: {len(others)} services, {sum(len(left[service]) for service in others)} methods."]
    return [*lines, ""]


def _storage_table(rows: Sequence[UserCoverage]) -> Iterator[str]:
    yield "| method | calls | what came of it |"
    yield "| --- | --- | --- |"
    for row in rows:
        yield f"| `{row.method}` | {_names(row.calls)} | {f'`{row.problem}`: not covered' if row.problem else 'done'} |"


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
