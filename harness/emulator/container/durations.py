"""How long operations of Kubernetes Engine take here."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """How long operations take, in seconds; Google's take minutes."""

    create_cluster_s: float = 1.0
    delete_cluster_s: float = 1.0
    create_pool_s: float = 1.0
    delete_pool_s: float = 1.0
    resize_s: float = 1.0
    update_s: float = 0.5
