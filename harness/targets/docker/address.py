"""Where an engine is found on this machine."""

from pathlib import Path

SOCKET = Path("/var/run/docker.sock")
"""Where it listens. Source: https://docs.docker.com/reference/cli/dockerd/#daemon-socket-option"""
