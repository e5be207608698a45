"""Holds a job at operations on its checkpoint directory that were named before: the recorder's machinery, without a log.

Standard library only, as the recorder.
"""
