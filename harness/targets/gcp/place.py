"""Where a run on Google Cloud happens: said by the user, name by name. Nothing is taken from the configuration of another tool."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from harness.config import GcpTable
from harness.errors import UsageError

PREFIX = "HARNESS_GCP_"

FORMS: Mapping[str, tuple[str, str]] = {
    "project": (
        r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]",
        "a project ID, like my-project-123 (not its number, not its display name)",
    ),
    "region": (r"[a-z]+(?:-[a-z]+)+\d+", "a region, like europe-west4"),
    "bucket": (r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", "the name of a bucket, without gs://"),
    "job": (r"[a-z](?:[a-z0-9-]{0,47}[a-z0-9])?", "the name of a Cloud Run job: at most 49 letters, digits and hyphens"),
    "image": (r"[^\s@]+(?:@sha256:[0-9a-f]{64})?", "a container image"),
    "service_account": (r"[a-z0-9-]+@[a-z0-9.-]+\.gserviceaccount\.com", "the e-mail address of a service account"),
    "gpus": (r"\d{1,2}", "a number of GPUs"),
    "gpu_type": (r"[a-z0-9-]+", "a type of GPU, like nvidia-l4"),
    "cluster": (r"[a-z](?:[a-z0-9-]{0,38}[a-z0-9])?", "the name of a cluster"),
    "zone": (r"[a-z]+(?:-[a-z]+)+\d+(?:-[a-z])?", "the zone or region of the cluster, like us-east5-b"),
    "lock_bucket": (r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", "the name of a bucket, without gs://"),
}
"""Whole names only: what is written here is what is touched. Patterns and prefixes are refused.

Sources: https://cloud.google.com/resource-manager/docs/creating-managing-projects (ID), https://cloud.google.com/storage/docs/buckets#naming;
49 characters of a job are what Cloud Run's console and command line take.
"""

REQUIRED = ("project", "region", "bucket", "job")


class Place(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a run happens.

    Attributes:
        project: ID of the project. There is no default.
        region: Of Cloud Run.
        bucket: Where checkpoints and orders lie; nothing outside of ``harness/`` in it is touched.
        job: The Cloud Run job that is adopted, or made; empty: runs are on the cluster.
        image: Of the job that is made; empty: the job is adopted as it is.
        service_account: Of the job that is made.
        gpus: Of one task of the job that is made.
        gpu_type: Of the job that is made.
        cluster: A GKE cluster that is adopted; empty: none. Where a job is named as well, runs are on Cloud Run.
        zone: Of the cluster.
        lock_bucket: Where the lock of the project lies; empty: in ``bucket``.
    """

    project: str
    region: str
    bucket: str
    job: str
    image: str = ""
    service_account: str = ""
    gpus: int = 0
    gpu_type: str = ""
    cluster: str = ""
    zone: str = ""
    lock_bucket: str = ""

    @property
    def locks_in(self) -> str:
        """The bucket where the lock of the project lies."""
        return self.lock_bucket or self.bucket

    @property
    def parent(self) -> str:
        """Of jobs and of operations, as Cloud Run names it."""
        return f"projects/{self.project}/locations/{self.region}"

    @property
    def is_of_cluster(self) -> bool:
        """Whether runs are on the cluster."""
        return bool(self.cluster) and not self.job

    @property
    def job_name(self) -> str:
        """Full name of the job."""
        return f"{self.parent}/jobs/{self.job}"

    @property
    def cluster_name(self) -> str:
        """Full name of the cluster; empty where there is none."""
        return f"projects/{self.project}/locations/{self.zone}/clusters/{self.cluster}" if self.cluster else ""

    def environment(self) -> dict[str, str]:
        """The variables that say the same: for processes that make the runs."""
        return {PREFIX + name.upper(): value for name, value in self.named().items() if value}

    def named(self) -> dict[str, str]:
        """Every field by its name; empty where nothing is named."""
        return {name: str(value) if value else "" for name, value in msgspec.structs.asdict(self).items()}


def resolve_place(
    options: Mapping[str, str], environment: Mapping[str, str], table: GcpTable | None = None, *, required: Sequence[str] = REQUIRED
) -> Place:
    """The place that options name, else ``HARNESS_GCP_*``, else ``[gcp]`` of ``harness.toml``; field by field.

    ``GOOGLE_CLOUD_PROJECT`` and the like, gcloud's configuration and the project of credentials are never looked at: what is set for
    another purpose must not decide where faults happen. ``required`` is what must be named.

    Raises:
        UsageError: When a field is missing, or is not an exact name.
    """
    said = {name: _said(name, options, environment, table) for name in FORMS}
    missing = [name for name in required if not said[name] and not (name == "job" and said["cluster"])]
    if missing:
        names = ", ".join(missing)
        ways = f"give {', '.join(f'--{name}' for name in missing)}, or {', '.join(PREFIX + name.upper() for name in missing)}"
        raise UsageError(
            f"target gcp: no {names} is named; {ways}, or write {names} in [gcp] of harness.toml. There is no default; neither gcloud's "
            f"configuration nor GOOGLE_CLOUD_PROJECT is used"
        )
    if said["cluster"] and not said["zone"]:
        raise UsageError(f"target gcp: cluster {said['cluster']!r} needs its zone; give --zone, {PREFIX}ZONE, or zone in [gcp]")
    for name, value in said.items():
        pattern, form = FORMS[name]
        if value and not re.fullmatch(pattern, value):
            raise UsageError(f"target gcp: {name} {value!r} is not {form}; exact names only, never patterns")
    return Place(**{name: value for name, value in said.items() if name != "gpus"}, gpus=int(said["gpus"] or 0))


def _said(name: str, options: Mapping[str, str], environment: Mapping[str, str], table: GcpTable | None) -> str:
    return options.get(name, "") or environment.get(PREFIX + name.upper(), "") or str(getattr(table, name, "") or "")
