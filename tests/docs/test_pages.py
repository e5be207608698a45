"""Everything that the manual shows is run, read or compared: nothing in it is only written."""

import json
import re
import shlex
import tomllib

import pytest
import typer

from harness.cli.commands import app
from harness.config import TEMPLATE, read_config
from harness.scenario import Scenario, decode
from tests.docs.pages import DOCS, blocks_of, commands_in, files_of, matches, plain, run_page
from tests.docs.tables import PAGES, TABLES, tables_in, written_anew

MARKS = {"file", "run", "toml", "scenario", "copy", "by hand"}


def read(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


# ---- tables ----


@pytest.mark.parametrize("page", PAGES)
def test_tables_say_what_the_code_says(page):
    assert read(page) == written_anew(read(page))


def test_every_table_is_shown_somewhere():
    assert sorted(name for page in PAGES for name in tables_in(read(page))) == sorted(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_every_field_has_a_meaning(name):
    assert not [row for row in TABLES[name]().splitlines() if row.endswith("|  |")]


# ---- examples ----


@pytest.mark.parametrize("page", PAGES)
def test_every_example_says_how_it_is_held_to_the_truth(page):
    assert [block.text for block in blocks_of(page) if block.what not in MARKS] == []


def test_a_job_of_ones_own_goes_from_init_to_a_verdict(tmp_path):
    for line, expected, printed in run_page("own-job.md", tmp_path):
        assert matches(expected, printed), f"$ {line}\n{printed}"


def test_exploring_finds_what_the_page_shows(tmp_path):
    for line, expected, printed in run_page("explore.md", tmp_path):
        assert matches(expected, printed), f"$ {line}\n{printed}"


def test_scenarios_in_python_and_json_run(tmp_path):
    for line, expected, printed in run_page("scenarios.md", tmp_path, files=[files_of("own-job.md")]):
        assert matches(expected, printed), f"$ {line}\n{printed}"


def test_scenarios_run_as_tests(tmp_path):
    for line, expected, printed in run_page("pytest.md", tmp_path, files=[files_of("own-job.md"), files_of("scenarios.md")]):
        assert matches(expected, printed), f"$ {line}\n{printed}"


@pytest.mark.parametrize("page", PAGES)
def test_documents_validate(page, tmp_path):
    for block in blocks_of(page):
        if block.what == "toml":
            path = tmp_path / "harness.toml"
            path.write_text(block.text, encoding="utf-8")
            assert read_config(path)
        elif block.what == "scenario":
            assert decode(block.text, Scenario, document=page).name == json.loads(block.text)["name"]
        elif block.what == "copy":
            assert block.text == read(block.name)


def test_the_lines_that_count_are_those_of_the_template():
    """The page shows ``harness init``'s file without its comments, once ``result`` and ``done`` are taken in."""
    (shown,) = [block.text for block in blocks_of("own-job.md") if block.what == "toml"]
    taken_in = TEMPLATE.replace("# result =", "result =").replace("# done =", "done =")

    written = tomllib.loads(taken_in)

    for table, fields in tomllib.loads(shown).items():
        assert fields.items() <= written[table].items(), table


@pytest.mark.parametrize("page", PAGES)
def test_command_lines_that_no_test_runs_can_be_parsed(page):
    lines = [command.line for block in blocks_of(page) if block.what == "by hand" for command in commands_in(block)]

    for line in lines:
        words = shlex.split(line, comments=True)
        if words[0] == "harness":
            parse(words[1:])


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_sentences_exist(page):
    for line in re.findall(r"`harness ([^`]+)`", read(page)):
        parse(shlex.split(line))


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\((?!https?://)([^)\s]+)\)", read(page)):
        name, _, anchor = link.partition("#")
        path = DOCS / name if name else DOCS / page
        assert path.exists(), link
        assert not anchor or anchor in anchors_of(path.read_text(encoding="utf-8")), link


def anchors_of(text: str) -> set[str]:
    """What the headings of a page are called in links to them, as GitHub makes it of their words."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def parse(arguments: list[str]) -> None:
    """Parse a command line of ``harness`` without running it; of one that is only named it is enough that it exists."""
    group = typer.main.get_group(app)
    context = group.context_class(group, info_name="harness")
    name, command, rest = group.resolve_command(context, arguments)
    assert command is not None
    if rest:
        command.make_context(name, rest, parent=context)


# ---- what holds the examples to the truth ----


def test_what_differs_from_run_to_run_is_not_compared():
    assert plain("valid   1/1  2   0.21 s  runs/a/20261129T144714.035Z-0\nsha256 682a9f698fddd816") == plain(
        "valid  1/1   13  1.2 s   runs/a/20270101T000000.000Z-7\nsha256 6e3411a772f947f5"
    )


@pytest.mark.parametrize(
    ("expected", "printed", "is_shown"),
    [
        ("a\n…\nc", "a\nb\nb\nc", True),
        ("a\n…\nc", "a\nc", True),
        ("a\n…", "b", False),
        ("a", "a\nb", False),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_an_ellipsis_stands_for_any_lines_and_nothing_else_does(expected, printed, is_shown):
    assert matches(expected, printed) is is_shown
