"""Cloud Run jobs as processes of this machine."""

from harness.targets.local.target import LocalTarget

__all__ = ["LocalTarget"]
