"""What a run's things are called on a project: its job, its label, its parts of the bucket."""

import hashlib

from harness.targets.gcp.guard import run_prefix
from harness.targets.gcp.place import Place

JOB_LENGTH_MAX = 49
HASH_LENGTH = 8


def run_job_name(place: Place, run_id: str) -> str:
    """The full name of a run's own job."""
    digest = hashlib.sha256(run_id.encode()).hexdigest()[:HASH_LENGTH]
    return f"{place.parent}/jobs/{place.job[: JOB_LENGTH_MAX - HASH_LENGTH - 2].rstrip('-')}-h{digest}"


def run_label(run_id: str) -> str:
    """The run id as the value of a label: small letters, digits, hyphens, at most 63.

    Source: https://docs.cloud.google.com/resource-manager/docs/labels-overview
    """
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_") else "-" for letter in run_id.lower())[:63]


def checkpoints_prefix(run_id: str) -> str:
    """Where a run's checkpoints lie in the bucket."""
    return f"{run_prefix(run_id)}checkpoints/"


def agent_prefix(run_id: str) -> str:
    """Where its agent, orders and reports lie."""
    return f"{run_prefix(run_id)}agent/"
