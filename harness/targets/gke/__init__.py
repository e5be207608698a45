"""The target ``gcp`` for scenarios of a cluster: a GKE cluster of a project, adopted.

It stands on two targets that do not know one another: how a cluster is spoken with is of ``harness.targets.kubernetes``, and how a project
is, of ``harness.targets.gcp``.
"""
