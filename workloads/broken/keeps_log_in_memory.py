"""Wrong: keeps what it prints in memory and writes it when it ends by itself.

Symptom: the log of an attempt that is killed is empty; an operator cannot see how far it came, or that it had started at all.
No case: own finding: Python buffers the standard output of a container, and a SIGKILL takes the buffer with it
Caught by: log-order
"""

import contextlib
import io

from workloads.linear.train import Trainer, main


class KeepsLogInMemory(Trainer):
    """Prints at the end."""

    def run(self) -> int:
        """Run, then say what there was to say."""
        log = io.StringIO()
        try:
            with contextlib.redirect_stdout(log):
                return super().run()
        finally:
            print(log.getvalue(), end="", flush=True)


if __name__ == "__main__":
    raise SystemExit(main(KeepsLogInMemory))
