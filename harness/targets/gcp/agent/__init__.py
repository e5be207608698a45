"""The agent: wraps a job's command inside its container, and speaks with the target through numbered files in the mounted bucket.

It goes into the container as one archive (``harness.targets.gcp.agent_archive``) and runs on the container's own Python, 3.8 or newer, with
the standard library alone. So nothing outside of this package may be imported here.
"""
