"""The target named ``kind``: a real cluster with Kueue and KubeRay, and what emulates the parts of Google's that are not in it."""
