"""The target named ``kind``: a real cluster with Kueue and KubeRay, and what emulates the parts of Google's that are not in it.

Nothing is imported here: what a run has left behind is found without the Kubernetes client.
"""
