"""Measures what an emulator covers: by the lists that the clients bring, and by calling what brings none."""

from harness.emulator.coverage import CLIENTS, Coverage, MethodCoverage, coverage_of, operations_coverage
from harness.emulator.emulator import EXAMPLE_PROJECT, Emulator
from harness.emulator.storage_coverage import storage_coverage, untried_methods


def measure_coverage(emulator: Emulator) -> Coverage:
    """What an emulator covers that nobody has called, of the project of the example."""
    spoken = emulator.method_names() | emulator.route_names()
    methods: list[MethodCoverage] = [row for client in CLIENTS for row in coverage_of(client, spoken)]
    return Coverage(
        methods=(*methods, *operations_coverage(spoken)),
        storage=tuple(storage_coverage(emulator, EXAMPLE_PROJECT)),
        untried=tuple(untried_methods()),
        routes=tuple(sorted(name for name in emulator.route_names() if name.startswith(("storage.", "logging.", "emulator.")))),
    )
