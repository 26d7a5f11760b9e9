"""Who asks: from an API key to the tenant and groups that every store call is filtered by."""

import re
from ipaddress import ip_address
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from app.errors import Forbidden, Unauthorized
from app.http.state import state_of
from app.types import Access


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only be this machine."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]
Header = Annotated[str | None, Depends(APIKeyHeader(name="X-API-Key", auto_error=False))]


async def authenticate(request: Request, bearer: Bearer, header: Header) -> Access:
    """The caller's rights. Raises Unauthorized, and Forbidden for a foreign Host header where no key is configured."""
    keys = state_of(request)["keys"]
    if not keys:
        # Otherwise a web page whose name resolves to 127.0.0.1 reads this service through its visitor's browser.
        # The header itself is read: request.url takes one it finds odd, such as a name with "_", for our own address.
        if not is_loopback(re.sub(r":\d*$", "", request.headers.get("host", ""))):
            raise Forbidden("without API keys this service answers only to a loopback Host; set API_KEYS to open it")
        return Access()
    presented = bearer.credentials if bearer else header
    if presented is None:
        raise Unauthorized("give an API key as 'Authorization: Bearer <key>' or 'X-API-Key: <key>'")
    access = keys.access(presented)
    if access is None:
        raise Unauthorized("this API key is not known")
    return access


CallerAccess = Annotated[Access, Depends(authenticate)]
