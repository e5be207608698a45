"""The exit codes of the command line, and what is said with them."""

EXIT_CODES = {"valid": 0, "invalid": 1, "unknown": 2}
"""By verdict."""

EXIT_USAGE, EXIT_BROKEN, EXIT_INTERRUPTED = 64, 70, 130


def in_full(error: BaseException) -> str:
    """An error in one line, with what broke after it."""
    return "; ".join([str(error), *getattr(error, "__notes__", [])])
