"""Orders to the agents of an execution, and their answers."""

import threading
from collections.abc import Callable

from harness.history import Event
from harness.protocol.attempt_key import WHOLE_ATTEMPT, AttemptKey
from harness.targets.gcp.agent_following import AgentFollowing
from harness.targets.gcp.attempts import Attempts
from harness.targets.gcp.grounds import Grounds
from harness.targets.gcp.mailbox import OrderWriter


class AgentOrders:
    """Of one execution.

    Args:
        grounds: What it works with.
        attempts: What agents have told.
        agents: Hears them.
        news: Set when there is anything to hear.
        heard: Gets what else was heard while an answer was waited for.
    """

    def __init__(
        self,
        grounds: Grounds,
        attempts: Attempts,
        agents: AgentFollowing,
        *,
        news: threading.Event,
        heard: Callable[[list[Event]], None],
    ) -> None:
        self._grounds, self._attempts, self._agents = grounds, attempts, agents
        self._news, self._heard = news, heard
        self._writer = OrderWriter(grounds.agent.below("orders"), grounds.clock)

    def give(self, key: AttemptKey, do: str, *, rank: int = WHOLE_ATTEMPT, pid: int = WHOLE_ATTEMPT, **fields: object) -> int:
        """Give an agent an order; returns its number.

        Raises:
            CallError: When the bucket does not take it.
        """
        number = self._writer.write(key, do, pid=pid, **fields)
        asked_s = self._writer.asked_s(key, number)
        self._attempts.note_order(key, number, asked_s=asked_s if asked_s is not None else 0.0, pid=pid, rank=rank)
        self._agents.hurry()
        return number

    def give_and_hear(self, key: AttemptKey, do: str, *, rank: int = WHOLE_ATTEMPT, **fields: object) -> tuple[int, ...]:
        """Give an order and wait for its answer: who was reached.

        Raises:
            LookupError: When the attempt does not run, or its agent refuses, or does not answer.
        """
        attempt, clock, pace = self._attempts.find(key), self._grounds.clock, self._grounds.pace
        number = self.give(key, do, rank=rank, pid=self._attempts.pid_of(key, rank), **fields)
        deadline_s = clock.monotonic_s() + pace.order_s_max
        while number not in attempt.heard:
            if clock.monotonic_s() >= deadline_s:
                raise LookupError(f"the agent of attempt {key.attempt} of task {key.task} has not answered order {number} ({do})")
            if not attempt.is_running:
                raise LookupError(f"attempt {key.attempt} of task {key.task} has ended before it got order {number} ({do})")
            self._news.wait(pace.reports_s)
            self._news.clear()
            self._heard(self._agents.hear())
        answer = attempt.heard.pop(number)
        if answer.kind == "refused":
            raise LookupError(f"the agent of attempt {key.attempt} of task {key.task} refused order {number} ({do}): {answer.reason}")
        return answer.pids
