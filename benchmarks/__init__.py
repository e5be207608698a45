"""The figures of the design, measured as ratios in one run on one machine: ``python -m benchmarks``."""
