"""How often things are looked at, and how long is waited for them: on a project by what calls cost, on an emulator by what a test takes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds.

    Attributes:
        reports_s, reports_longest_s: Between two looks for what agents say.
        watch_s, watch_longest_s: Between two looks at execution and tasks.
        log_s, log_longest_s: Between two looks at the log. Cloud Logging takes 60 reads a minute of a project.
        log_page_s: Between two pages of a look that finds more than one, so that others may read, too.
        said_every_s: How often an agent says what is not urgent.
        look_every_s: How often an agent looks for orders.
        order_s_max: How long an answer to an order may take.
        silence_s: When an attempt is known to be over, how long its agent's last word may still be on its way.
        end_line_s: After an attempt's end, how long its last lines of the log are waited for before the end is told.
        log_quiet_s: At the end, how long nothing new may have come for the log to count as whole.
        log_s_max: At the end, how long is waited for it.
        last_look_s_max: How long the last look at the log may take, which goes back to its beginning.

    Source: https://docs.cloud.google.com/logging/quotas (read requests a minute).
    """

    reports_s: float = 0.25
    reports_longest_s: float = 1.0
    watch_s: float = 2.0
    watch_longest_s: float = 15.0
    log_s: float = 3.0
    log_longest_s: float = 15.0
    log_page_s: float = 1.5
    said_every_s: float = 1.0
    look_every_s: float = 0.1
    order_s_max: float = 30.0
    silence_s: float = 10.0
    end_line_s: float = 20.0
    log_quiet_s: float = 10.0
    log_s_max: float = 90.0
    last_look_s_max: float = 120.0


PROJECT = Pace()
"""On a real project."""

EMULATED = Pace(
    reports_s=0.01,
    reports_longest_s=0.05,
    watch_s=0.05,
    watch_longest_s=0.2,
    log_s=0.05,
    log_longest_s=0.2,
    log_page_s=0.0,
    said_every_s=0.05,
    look_every_s=0.01,
    order_s_max=10.0,
    silence_s=0.3,
    end_line_s=5.0,
    log_quiet_s=0.3,
    log_s_max=10.0,
    last_look_s_max=30.0,
)
"""On an emulator: everything is on this machine."""
