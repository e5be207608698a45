"""``pytest -m chaos --kill-points each``: one test id per kill point of a recorded run.

The job is recorded once for a session, by the worker that comes first, while tests are collected. A test then judges what storage can hold
when the job dies at one moment, by the same executor and criteria as ``harness explore``.

As in the rest of the plugin, whatever is heavy is imported where it is used, and the rooms with hooks, ``collection``, ``judging`` and
``terminal``, do not know one another.
"""
