"""What a reasoning model writes to itself before its answer, where the endpoint leaves that in the text."""

from dataclasses import dataclass

_BEGIN, _END = "<think>", "</think>"


def without_thoughts(text: str) -> str:
    """What stands behind them; nothing where the text ends among them. Some endpoints leave out the tag that begins."""
    if _END in text:
        return text.rpartition(_END)[2].lstrip()
    return "" if text.lstrip().startswith(_BEGIN) else text


@dataclass(slots=True)
class Thinking:
    """A stream's pieces but for the thoughts that it begins with."""

    _held: str | None = ""
    """What may belong to them; None once the answer has begun."""

    def shown(self, piece: str) -> str:
        """What of the text so far can be shown now."""
        if self._held is None:
            return piece
        self._held += piece
        begun = self._held.lstrip()
        if _END not in begun and (begun.startswith(_BEGIN) or _BEGIN.startswith(begun)):
            return ""
        held, self._held = self._held, None
        return without_thoughts(held)

    def rest(self) -> str:
        """At the end: what was held, and is no thought."""
        held, self._held = self._held or "", None
        return without_thoughts(held)
