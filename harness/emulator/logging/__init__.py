"""Cloud Logging v2: entries written, listed, followed and deleted, over gRPC and REST, with the query language.

Not emulated: sinks, metrics, exclusions, log buckets and views, organizations and folders, rate limits, and the delay until an entry can be
found.
Entries that come late, twice, out of order or never are played with ``LogEntryStore.disturb``.
"""
