"""What docs/gate.md shows is run; the workflows of docs/ci are what a careful owner would copy, and every command in them is one."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from harness.gate.figures import FIGURE_NAMES
from harness.gate.markdown import COMMENT_MAX
from tests.docs.pages import DOCS, blocks_of, commands_in, files_of, matches, run_page
from tests.docs.test_pages import anchors_of, parse

PAGE = "gate.md"
CI = DOCS / "ci"
WORKFLOWS = sorted(CI.glob("*.yml"))

ACTIONS = {
    "actions/checkout",
    "actions/setup-python",
    "actions/upload-artifact",
    "actions/download-artifact",
    "actions/cache",
    "google-github-actions/auth",
}


def test_a_gate_goes_from_its_first_result_to_a_regression_that_is_accepted(tmp_path):
    for line, expected, printed in run_page(PAGE, tmp_path, files=[files_of("own-job.md")]):
        assert matches(expected, printed), f"$ {line}\n{printed}"


def test_the_page_tells_every_figure_and_the_limit_of_a_comment():
    text = (DOCS / PAGE).read_text(encoding="utf-8")

    assert re.findall(r"^\| `([a-z_]+)` \| (?:steps|from|share|seconds)", text, re.MULTILINE) == list(FIGURE_NAMES)
    assert f"{COMMENT_MAX:,} characters" in text


# ---- workflows ----


def read(path: Path) -> dict:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    found["on"] = found.pop(True)  # YAML 1.1 takes the word for a truth
    return found


def jobs_of(path: Path) -> dict[str, dict]:
    return read(path)["jobs"]


def steps_of(path: Path) -> list[dict]:
    return [step for job in jobs_of(path).values() for step in job["steps"]]


def commands_of(path: Path) -> list[list[str]]:
    """The ``harness`` lines of a workflow, as words."""
    lines = [line for step in steps_of(path) for line in step.get("run", "").splitlines()]
    pieces = [piece for line in lines for piece in re.split(r"\|\||&&|;", line)]
    return [words[1:] for piece in pieces if (words := shlex.split(piece, comments=True)) and words[0] == "harness"]


def test_there_is_one_for_each_target():
    assert [path.name for path in WORKFLOWS] == ["chaos-gcp.yml", "chaos-kind.yml", "chaos-local.yml"]
    for path in WORKFLOWS:
        targets = {words[words.index("--target") + 1] for words in commands_of(path) if "--target" in words}
        assert targets == {path.stem.removeprefix("chaos-")}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_command_can_be_parsed_with_all_its_options(path: Path):
    commands = commands_of(path)

    assert "gate" in [words[0] for words in commands]
    for words in commands:
        parse(words)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_no_more_rights_are_given_than_are_used(path: Path):
    allowed = {"contents": "read", "id-token": "write", "pull-requests": "write"}

    assert read(path)["permissions"] == {}
    for job in jobs_of(path).values():
        rights = job["permissions"]
        assert rights.items() <= allowed.items()
        uses = [step.get("uses", "") for step in job["steps"]]
        assert ("contents" in rights) == any(use.startswith("actions/checkout@") for use in uses)
        assert ("id-token" in rights) == any(use.startswith("google-github-actions/auth@") for use in uses)
        if "pull-requests" in rights:  # who may write runs nothing that the pull request has brought
            assert "contents" not in rights
            assert not any("harness" in step.get("run", "") or "pip" in step.get("run", "") for step in job["steps"])
    assert "pull_request_target" not in read(path)["on"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_job_ends_and_none_runs_beside_another_of_its_kind(path: Path):
    assert read(path)["concurrency"]["group"]
    for job in jobs_of(path).values():
        inner = [step["timeout-minutes"] for step in job["steps"] if "timeout-minutes" in step]
        assert sum(inner) < job["timeout-minutes"] <= 120
        assert re.fullmatch(r"ubuntu-\d\d\.\d\d", job["runs-on"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_few_and_of_one_major_version_each(path: Path):
    for use in (step["uses"] for step in steps_of(path) if "uses" in step):
        name, _, version = use.partition("@")
        assert name in ACTIONS
        assert re.fullmatch(r"v\d+", version)


def test_the_page_says_how_each_action_is_pinned_by_its_commit():
    text = (CI / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^\$ (git ls-remote .*)$", text, re.MULTILINE)

    assert shlex.split(command)[2].removeprefix("https://github.com/") in ACTIONS
    assert all(f"`{name}`" in text or f"github.com/{name} " in text for name in ACTIONS)


GH = """#!{python}
import json, sys
from pathlib import Path
here, words = Path({here!r}), sys.argv[1:]
comments = json.loads((here / "comments.json").read_text())
if words[0] == "api" and "PATCH" not in words:
    assert "--paginate" in words and words[2] == "repos/o/r/issues/7/comments" and words[3] == "--jq"
    assert words[4] == '.[] | select(.user.login == "github-actions[bot]" and (.body | startswith("<!-- chaos-local -->"))) | .id'
    for each in comments:
        if each["login"] == "github-actions[bot]" and each["body"].startswith("<!-- chaos-local -->"):
            print(each["id"])
    sys.exit(0)
if words[0] == "api":
    (number,) = [word.rsplit("/", 1)[1] for word in words if word.startswith("repos/o/r/issues/comments/")]
    (body,) = [word.removeprefix("body=@") for word in words if word.startswith("body=@")]
    (comment,) = [each for each in comments if each["id"] == int(number)]
    comment["body"] = Path(body).read_text()
else:
    assert words[:3] == ["pr", "comment", "7"]
    comments.append({{"id": 99, "login": "github-actions[bot]", "body": Path(words[4]).read_text()}})
(here / "comments.json").write_text(json.dumps(comments))
"""
"""The answers of GitHub's command line, as far as the comment needs them."""


def comment(here: Path, comments: list[dict[str, object]]) -> list[dict[str, object]]:
    """Run the step that comments, with ``gh`` played, and return the comments after it."""
    (step,) = [step for step in jobs_of(CI / "chaos-local.yml")["comment"]["steps"] if "run" in step]
    (here / "comments.json").write_text(json.dumps(comments))
    (here / "gh").write_text(GH.format(python=sys.executable, here=str(here)))
    (here / "gh").chmod(0o755)
    variables = {"PATH": f"{here}:{os.environ['PATH']}", "GH_REPO": "o/r", "NUMBER": "7", "RUN_URL": "https://here"}
    subprocess.run(["bash", "-e", "-c", step["run"]], cwd=here, env=variables, check=True)
    return json.loads((here / "comments.json").read_text())


def test_the_comment_is_written_anew_and_no_other_is(tmp_path: Path):
    (tmp_path / "summary.md").write_text("## The release gate passes\n")
    other: dict[str, object] = {"id": 3, "login": "github-actions[bot]", "body": "coverage"}
    copied: dict[str, object] = {"id": 4, "login": "somebody", "body": "<!-- chaos-local -->"}

    first = comment(tmp_path, [other, copied])
    assert first[:2] == [other, copied]
    assert str(first[2]["body"]).startswith("<!-- chaos-local -->\n## The release gate passes\n")

    (tmp_path / "summary.md").write_text("## The release gate **fails**\n")
    later: dict[str, object] = {"id": 100, "login": "github-actions[bot]", "body": "coverage again"}
    second = comment(tmp_path, [*first, later])
    assert [second[0], second[1], second[3]] == [other, copied, later]
    assert "**fails**" in str(second[2]["body"])
    assert "passes" not in str(second[2]["body"])


def test_a_gate_without_a_word_takes_the_place_of_the_comment_before(tmp_path: Path):
    before: dict[str, object] = {"id": 3, "login": "github-actions[bot]", "body": "<!-- chaos-local -->\n## The release gate passes\n"}
    (after,) = comment(tmp_path, [before])

    assert "**has no result**" in str(after["body"])
    assert "passes" not in str(after["body"])
    downloads = [step for step in jobs_of(CI / "chaos-local.yml")["comment"]["steps"] if "uses" in step]
    assert [step["continue-on-error"] for step in downloads] == [True]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_packages_are_installed_by_hash_and_no_text_of_others_is_run(path: Path):
    for step in steps_of(path):
        script = step.get("run", "")
        assert "${{" not in script
        for line in script.splitlines():
            assert "pip install" not in line or "--require-hashes" in line or "--no-deps" in line
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_a_cancelled_gate_has_left_is_ended_and_what_it_has_measured_is_kept(path: Path):
    for job in jobs_of(path).values():
        steps = job["steps"]
        gates = [number for number, step in enumerate(steps) if "harness gate" in step.get("run", "") and "--plan " not in step["run"]]
        for number in gates:
            later = [step for step in steps[number + 1 :] if step.get("if") == "always()"]
            assert any("harness clean" in step.get("run", "") for step in later)
            (kept,) = [step["with"]["path"] for step in later if step.get("uses", "").startswith("actions/upload-artifact@")]
            assert "runs/gates" in kept
            assert "summary.md" in kept
            assert "gha-creds" not in kept
            assert "." not in kept.split()  # not all that lies there: credentials lie there too


@pytest.mark.parametrize("name", ["chaos-local.yml", "chaos-kind.yml"])
def test_what_costs_nothing_runs_at_night(name: str):
    (when,) = read(CI / name)["on"]["schedule"]

    assert re.fullmatch(r"[1-9]\d? \d \* \* \*", when["cron"])  # not at the full hour, when everybody does


def test_on_a_project_a_plan_is_read_by_somebody_before_it_is_applied():
    jobs = jobs_of(CI / "chaos-gcp.yml")
    plan, apply = jobs["plan"], jobs["apply"]

    assert set(read(CI / "chaos-gcp.yml")["on"]) == {"workflow_dispatch"}
    assert apply["needs"] == "plan"
    assert apply["environment"] == "chaos"
    assert "environment" not in plan
    planned = [words for words in commands_of(CI / "chaos-gcp.yml") if "--plan" in words]
    applied = [words for words in commands_of(CI / "chaos-gcp.yml") if "--apply" in words]
    assert len(planned) == len(applied) == 1
    assert planned[0][planned[0].index("--plan-file") + 1] == applied[0][applied[0].index("--apply") + 1] == "plan.json"
    assert ("--read-only-planner" in planned[0], "--read-only-planner" in applied[0]) == (True, False)  # each by an account of its own
    uploaded = [step["with"] for step in plan["steps"] if step.get("uses", "").startswith("actions/upload-artifact@")]
    downloaded = [step["with"] for step in apply["steps"] if step.get("uses", "").startswith("actions/download-artifact@")]
    assert (uploaded[0]["name"], uploaded[0]["path"]) == (downloaded[0]["name"], "plan.json")
    accounts = {
        job: step["with"]["service_account"] for job in jobs for step in jobs[job]["steps"] if "google-github" in step.get("uses", "")
    }
    assert len(set(accounts.values())) == 2


@pytest.mark.parametrize("path", sorted(CI.iterdir()), ids=lambda path: path.name)
def test_no_registry_is_named(path: Path):
    assert not re.search(r"\b(docker\.io|quay\.io|ghcr\.io|[a-z-]*gcr\.io|pkg\.dev|registry\.)", path.read_text(encoding="utf-8"))


def test_the_page_of_the_workflows_leads_somewhere_and_its_commands_can_be_parsed():
    text = (CI / "README.md").read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!https?://)([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        assert (CI / name).exists(), link
        assert not anchor or anchor in anchors_of((CI / name).read_text(encoding="utf-8")), link
    for command in (command for block in blocks_of("ci/README.md") for command in commands_in(block)):
        words = shlex.split(command.line)
        if words[0] == "harness":
            parse(words[1:])
    assert {path.name for path in WORKFLOWS} == set(re.findall(r"\]\((chaos-[a-z]+\.yml)\)", text))
    variables = {found for path in WORKFLOWS for found in re.findall(r"vars\.([A-Z_]+)", path.read_text(encoding="utf-8"))}
    assert all(f"`{name}`" in text for name in variables)
