"""Every error a caller can meet, on one screen.

SextantError                 500  internal
├─ InvalidRequest            400  bad_request
│  ├─ InvalidInput           422  invalid_input         a body or parameter of the wrong shape
│  ├─ InvalidFilter          422  invalid_filter
│  ├─ InvalidOptions         422  invalid_options
│  └─ InvalidQuery           422  invalid_query         SQL that cannot or may not be run
├─ Unauthorized              401  unauthorized
├─ Forbidden                 403  forbidden
├─ NotFound                  404  not_found
│  └─ UnknownArchitecture    404  unknown_architecture
├─ MethodNotAllowed          405  method_not_allowed
├─ BodyTooSlow               408  body_too_slow         a request's body that takes too long to arrive
├─ Conflict                  409  conflict              what is asked for is no longer what is stored
├─ PayloadTooLarge           413  payload_too_large
├─ UnsupportedMedia          415  unsupported_media_type
├─ LimitExceeded             429  limit_exceeded        the request's own limits
├─ Busy                      429  busy                  the service's capacity; has retry_after
├─ Cancelled                 499  cancelled             the client has gone
├─ UpstreamFailed            502  upstream_failed       a model endpoint answered nonsense or an error
├─ Unavailable               503  unavailable           a dependency is down
│  ├─ StoreUnavailable       503  store_unavailable
│  │  └─ IndexMissing        503  store_unavailable     there is no such collection yet
│  ├─ StoreLocked            503  store_locked          another process owns the embedded index
│  └─ GeneratorUnavailable   503  generator_unavailable
├─ Timeout                   504  timeout
├─ IndexMismatch             500  index_mismatch        index was built with other models or chunker
└─ DocumentError             422  document_error        a file that cannot be ingested; has a reason
"""

from typing import ClassVar


class SextantError(Exception):
    """Base of all errors; `detail` (the message) is written for the person who can act on it."""

    status: ClassVar[int] = 500
    error_code: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"
    retry_after: float | None = None
    """Seconds after which a retry may succeed, where known."""


class InvalidRequest(SextantError):
    status = 400
    error_code = "bad_request"
    title = "Bad request"


class InvalidInput(InvalidRequest):
    status = 422
    error_code = "invalid_input"
    title = "Invalid input"


class InvalidFilter(InvalidRequest):
    status = 422
    error_code = "invalid_filter"
    title = "Invalid filter"


class InvalidOptions(InvalidRequest):
    status = 422
    error_code = "invalid_options"
    title = "Invalid options"


class InvalidQuery(InvalidRequest):
    status = 422
    error_code = "invalid_query"
    title = "Invalid query"


class Unauthorized(SextantError):
    status = 401
    error_code = "unauthorized"
    title = "Unauthorized"


class Forbidden(SextantError):
    status = 403
    error_code = "forbidden"
    title = "Forbidden"


class NotFound(SextantError):
    status = 404
    error_code = "not_found"
    title = "Not found"


class UnknownArchitecture(NotFound):
    error_code = "unknown_architecture"
    title = "Unknown architecture"


class MethodNotAllowed(SextantError):
    status = 405
    error_code = "method_not_allowed"
    title = "Method not allowed"


class BodyTooSlow(SextantError):
    status = 408
    error_code = "body_too_slow"
    title = "Request body too slow"


class Conflict(SextantError):
    status = 409
    error_code = "conflict"
    title = "Conflict"


class PayloadTooLarge(SextantError):
    status = 413
    error_code = "payload_too_large"
    title = "Payload too large"


class UnsupportedMedia(SextantError):
    status = 415
    error_code = "unsupported_media_type"
    title = "Unsupported media type"


class LimitExceeded(SextantError):
    status = 429
    error_code = "limit_exceeded"
    title = "Request limit exceeded"


class Busy(SextantError):
    status = 429
    error_code = "busy"
    title = "Too many requests"

    def __init__(self, detail: str, retry_after: float = 1.0) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Cancelled(SextantError):
    status = 499
    error_code = "cancelled"
    title = "Client closed request"


class UpstreamFailed(SextantError):
    status = 502
    error_code = "upstream_failed"
    title = "Upstream failed"


class Unavailable(SextantError):
    status = 503
    error_code = "unavailable"
    title = "Service unavailable"


class StoreUnavailable(Unavailable):
    error_code = "store_unavailable"
    title = "Vector store unavailable"


class IndexMissing(StoreUnavailable):
    """There is no such collection yet."""


class StoreLocked(Unavailable):
    error_code = "store_locked"
    title = "Index is locked"


class GeneratorUnavailable(Unavailable):
    error_code = "generator_unavailable"
    title = "Generator unavailable"


class Timeout(SextantError):
    status = 504
    error_code = "timeout"
    title = "Timed out"


class IndexMismatch(SextantError):
    error_code = "index_mismatch"
    title = "Index does not match the configuration"


class DocumentError(SextantError):
    """A file that cannot be ingested; `reason` is one of a closed list that batch reports count by."""

    status = 422
    error_code = "document_error"
    title = "Document cannot be ingested"

    def __init__(self, detail: str, reason: str = "unreadable") -> None:
        super().__init__(detail)
        self.reason = reason
        """empty | not_pdf | unsupported | damaged | password | no_pages | no_text | too_large | timeout | crashed |
        metadata | unreadable"""
