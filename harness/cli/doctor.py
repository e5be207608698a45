"""What is available here, and what to install for what is not."""

import sys
from importlib.metadata import PackageNotFoundError, version

import msgspec

from harness.cli.clusters import looking_at
from harness.explore.recording import recorder_available
from harness.kind import find_cluster, problem_with, problem_with_engine, problem_with_operators
from harness.kind.bundle.builder import missing_pieces
from harness.kind.engine import INSTALL_ADVICE, server_version
from harness.targets import NAMES, availability, missing_here


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that may be here."""

    name: str
    is_available: bool
    detail: str


PACKAGES = (
    ("jax", "workloads jax-gpu, jax-tpu", "chaos-harness[workloads]"),
    ("optax", "workloads jax-gpu, jax-tpu", "chaos-harness[workloads]"),
    ("orbax-checkpoint", "workload jax-gpu", "chaos-harness[workloads]"),
    ("ray", "workload jax-tpu", "chaos-harness[workloads]"),
    ("pytest", "pytest -m chaos", "chaos-harness[pytest]"),
    ("pytest-xdist", "pytest -n", "chaos-harness[pytest]"),
)


def diagnose() -> list[Diagnosis]:
    """Look at targets, capabilities and packages."""
    found = [Diagnosis(name="python", is_available=(3, 11) <= sys.version_info[:2] <= (3, 13), detail=sys.version.split()[0])]
    for name in NAMES:
        here = availability(name)
        found.append(
            Diagnosis(
                name=f"target {name}",
                is_available=here.is_available,
                detail=here.reason if here.is_available else f"{here.reason}; {here.advice}",
            )
        )
    found += _diagnose_cluster()
    found += [Diagnosis(name=name, is_available=not reason, detail=reason or "yes") for name, reason in missing_here()]
    unseen = recorder_available()
    found.append(Diagnosis(name="recorder of operations", is_available=not unseen, detail=unseen or "for harness explore"))
    for package, purpose, extra in PACKAGES:
        try:
            found.append(Diagnosis(name=package, is_available=True, detail=f"{version(package)}, for {purpose}"))
        except PackageNotFoundError:
            found.append(Diagnosis(name=package, is_available=False, detail=f"for {purpose}: pip install '{extra}'"))
    return found


def _diagnose_cluster() -> list[Diagnosis]:
    """The Docker engine; with one, what a cluster is made of, and the cluster itself."""
    problem = problem_with_engine()
    if problem:
        return [Diagnosis(name="docker engine", is_available=False, detail=f"{problem}; {INSTALL_ADVICE}")]
    cluster, missing = find_cluster(), missing_pieces()
    broken = problem_with(cluster) or (problem_with_operators(cluster) if cluster is not None else "")
    bundle = f"lacks {', '.join(missing)}; run `make kind-bundle`, or pull: `harness up kind --images pulled`" if missing else "complete"
    made_of = ", ".join(f"{name} {version}" for name, version in cluster.versions.items()) if cluster else ""
    found = [
        Diagnosis(name="docker engine", is_available=True, detail=server_version()),
        Diagnosis(name="kind bundle", is_available=not missing, detail=bundle),
        Diagnosis(name="kind cluster", is_available=not broken, detail=broken or f"up: {made_of}"),
    ]
    if cluster is not None and not broken:
        found.append(Diagnosis(name="kubectl for the cluster", is_available=True, detail=looking_at(cluster)))
    return found
