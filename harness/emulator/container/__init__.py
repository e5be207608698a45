"""Kubernetes Engine v1: clusters, node pools and operations, over gRPC.

Not emulated: the Kubernetes API of a cluster, its autoscaler, upgrades, Autopilot. Nodes are instances of Compute Engine where it is wired.
"""
