"""An agent's actions: numbered and traced, limited in number and time, each identical one done once."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar, cast

from app.errors import LimitExceeded, SextantError, Timeout
from app.spans import of_action
from app.tools import ACTION, Tools

T = TypeVar("T")
ToolName: TypeAlias = Literal["search", "open_page", "follow_entity", "figures", "calculate", "answer"]
"""What an action can do; also a label of metrics, so the list is closed."""
LimitName: TypeAlias = Literal["actions", "steps", "calls_or_tokens", "time"]
"""What can end a run early; also a label of metrics."""


class RepeatedAction(SextantError):
    """An action identical to an earlier one, which would give the same again."""

    status = 409
    error_code = "repeated_action"
    title = "Repeated action"


@dataclass(slots=True)
class Actions:
    """One request's. `take` is safe to call from several tasks at once."""

    tools: Tools
    most: int
    """Actions allowed."""
    timeout_s: float
    """Seconds one may take."""
    taken: int = 0
    _found: dict[str, Any] = field(default_factory=dict)
    """What each action gave, or None while it is being done, by its tool and arguments."""

    async def take(
        self,
        tool: ToolName,
        arguments: Mapping[str, Any],
        thought: str,
        work: Callable[[], Awaitable[T]],
        results: Callable[[T], Sequence[str]] = lambda _: (),
        *,
        once: bool = False,
    ) -> T:
        """The work's result, or what an identical action gave before, which is no action.

        `results` says its ids for the trace. Raises LimitExceeded, Timeout, what the work raises, and with `once`
        RepeatedAction instead of giving a result again; each is in the trace.
        """
        key = json.dumps([tool, arguments], sort_keys=True, default=str)
        if not once and self._found.get(key) is not None:
            return cast(T, self._found[key])
        self.taken += 1
        number = self.taken
        step = self.tools.note("act", step=number, tool=tool, arguments=dict(arguments), thought=thought)
        token = ACTION.set(number)
        try:
            if self.taken > self.most:
                raise LimitExceeded(f"the limit of {self.most} actions is reached")
            if once and key in self._found:
                raise RepeatedAction(f"{tool} was called with the same arguments before")
            self._found.setdefault(key, None)
            with of_action(tool):
                async with asyncio.timeout(self.timeout_s):
                    found = await work()
            step.detail["results"] = list(results(found))
            self._found[key] = found
            return found
        except SextantError as error:
            step.detail["error"] = error.error_code
            raise
        except TimeoutError:
            step.detail["error"] = Timeout.error_code
            raise Timeout(f"{tool} took longer than {self.timeout_s:g} s") from None
        finally:
            ACTION.reset(token)
            self.tools.emit("stage", step)

    def stopped(self, error: SextantError) -> str:
        """Why the run ends early, for its notes; noted in the trace as a limit met."""
        limit: LimitName = "time" if isinstance(error, Timeout) else "calls_or_tokens"
        if self.taken > self.most:
            limit = "actions"
        self.tools.note("limit", limit=limit, why=str(error))
        return str(error)
