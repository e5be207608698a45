"""The recorder: performs what a job does to its checkpoint directory on the job's behalf, one call after the other, and logs it.

So the order of the log is the order of storage, and the bytes of the log are the bytes that were stored. Standard library only. The log's
format is ``harness.explore.operations``.
"""
