"""The agent as one file that any Python from 3.8 on runs: an archive of its modules, nothing else of the harness."""

import io
import zipfile
from pathlib import Path

from harness.targets.gcp import agent

ARCHIVE_NAME = "agent.pyz"

MAIN = b"""import sys
from harness.targets.gcp.agent.command_line import main
main(sys.argv[1:])
"""

_PACKAGES = ("harness", "harness/targets", "harness/targets/gcp")
"""Above the agent; empty in the archive, so that nothing but the agent is imported."""

_BEGINNING = (1980, 1, 1, 0, 0, 0)
"""The first moment that an archive can name: the same modules make the same bytes."""


def build_archive() -> bytes:
    """The archive; the same bytes each time."""
    folder = Path(agent.__file__).parent
    modules = {f"harness/targets/gcp/agent/{path.name}": path.read_bytes() for path in sorted(folder.glob("*.py"))}
    content = {"__main__.py": MAIN, **{f"{package}/__init__.py": b"" for package in _PACKAGES}, **modules}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in content.items():
            file.writestr(zipfile.ZipInfo(name, _BEGINNING), data)
    return archive.getvalue()
