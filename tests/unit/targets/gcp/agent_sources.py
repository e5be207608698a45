"""Where the agent's modules are."""

from pathlib import Path

from harness.targets.gcp import agent

AGENT = "harness.targets.gcp.agent"


def agent_modules() -> list[Path]:
    return sorted(Path(agent.__file__).parent.glob("*.py"))
