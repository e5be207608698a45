"""Hosts of a slice train together over jax.distributed, as one indexed Job of Kubernetes: a process a pod, no launcher above them."""
