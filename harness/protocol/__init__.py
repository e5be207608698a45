"""The harness's side of the workload protocol (``workloads/protocol.md``): what a job says and where it waits, wherever it runs."""
