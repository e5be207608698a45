"""The README's first screen is true: its commands exist, its output is of this catalogue, its examples run."""

import re
import tomllib
from pathlib import Path

from harness.cli.display import headings
from harness.config import TEMPLATE, Config
from harness.scenario import Scenario, convert
from scenarios import CATALOGUE

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str, after: str = "") -> str:
    found = re.search(rf"```{language}\n(.*?)```", README[README.index(after) :], re.DOTALL)
    assert found is not None
    return found[1]


def test_its_two_commands_are_targets_of_make() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    for command in re.findall(r"^make ([a-z-]+)", block("", "Two commands"), re.MULTILINE):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)


def test_its_output_is_of_this_catalogue() -> None:
    heading, *rows = block("", "<!-- output of make chaos -->").splitlines()
    named = [row.split()[-1] for row in rows if row.startswith("valid")]
    fast = [name for name, scenario in CATALOGUE.items() if not {"slow", "cluster"} & {*scenario.tags}]

    assert heading == headings()
    assert set(named) <= set(fast)
    assert f"… {len(fast) - len(named)} more" in rows
    assert any(re.fullmatch(rf"{len(fast)} valid in \d+ s", row) for row in rows)
    on_clusters = sum("cluster" in scenario.tags for scenario in CATALOGUE.values())
    slow = len(CATALOGUE) - len(fast) - on_clusters
    assert f"left out: {on_clusters} that belong to another target, {slow} slow (--slow)" in rows


def test_its_toml_is_what_init_writes_and_validates() -> None:
    config = convert(tomllib.loads(block("toml")), Config, document="README.md")

    assert config.workload.name in TEMPLATE


def test_its_scenario_is_one() -> None:
    names: dict[str, object] = {}
    exec(block("python"), names)

    assert isinstance(names["SIGKILL_DURING_A_SAVE"], Scenario)


def test_its_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)", README):
        assert (ROOT / link).exists(), link
