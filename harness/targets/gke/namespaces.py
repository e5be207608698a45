"""Where a run plays on a cluster that others use as well."""


def namespace_of(run_id: str) -> str:
    """The namespace of a run."""
    return f"harness-{run_id}"
