"""What can go wrong with an evaluation, apart from the questions themselves."""

from collections.abc import Mapping
from typing import Any


class UsageError(Exception):
    """The command cannot be carried out as given; the message says what to change."""


class QuestionFileError(UsageError):
    """A question file that cannot be read; says where and why."""


class SubjectError(Exception):
    """A request that got no reply; `problem` is the problem document, with its cost, where the service sent one."""

    def __init__(self, detail: str, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(detail)
        self.problem: dict[str, Any] = dict(problem or {"error_code": "unreachable", "detail": detail, "status": 0})
