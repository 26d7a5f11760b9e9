"""API keys, and the rights each carries."""

import hashlib
import hmac
from collections.abc import Mapping

from app.settings import Caller
from app.types import Access


class Keys:
    """The configured API keys, held as digests and compared in constant time."""

    def __init__(self, callers: Mapping[str, Caller]) -> None:
        self._callers = [(_digest(key), Access(c.tenant, c.groups)) for key, c in callers.items()]

    def __bool__(self) -> bool:
        return bool(self._callers)

    def access(self, presented: str) -> Access | None:
        """The key's rights, None for an unknown key. Looks at every key whatever it finds."""
        digest = _digest(presented)
        found = None
        for known, access in self._callers:
            if hmac.compare_digest(known, digest):
                found = access
        return found


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
