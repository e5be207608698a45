"""The agent as one file."""

import ast
import io
import sys
import zipfile

from harness.targets.gcp.agent_archive import ARCHIVE_NAME, build_archive
from tests.unit.targets.gcp.agent_sources import AGENT, agent_modules


def test_the_same_modules_make_the_same_archive():
    assert build_archive() == build_archive()
    assert ARCHIVE_NAME.endswith(".pyz")


def test_it_holds_the_agent_and_nothing_else_of_the_harness():
    with zipfile.ZipFile(io.BytesIO(build_archive())) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}

    modules = {name for name, data in content.items() if data and name != "__main__.py"}
    assert modules == {f"harness/targets/gcp/agent/{path.name}" for path in agent_modules()}


def test_every_module_is_readable_for_python_3_8():
    for path in agent_modules():
        ast.parse(path.read_text(), feature_version=(3, 8))


def test_it_needs_nothing_but_the_standard_library_and_itself():
    for path in agent_modules():
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.startswith(AGENT) or name.split(".")[0] in sys.stdlib_module_names, f"{path.name} imports {name}"
