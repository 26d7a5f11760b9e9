"""What the index holds, as far as the caller may see it; files taken in, documents taken out."""

import hashlib
import math
import uuid
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from app.errors import InvalidInput, NotFound, PayloadTooLarge, Unavailable
from app.evidence.citations import boxes_of
from app.http.access import CallerAccess
from app.http.document_replies import (
    DocumentReply,
    DocumentsReply,
    JobReply,
    JobsReply,
    PageReply,
    RemovedReply,
    document_reply,
    job_reply,
    page_reply,
    removed_reply,
)
from app.http.problems import FAILURES
from app.http.query import takes
from app.http.replies import Json
from app.http.state import state_of
from app.http.uploads import MEDIA, uploaded
from app.ports import Ingestion
from app.types import Access, Box, Document, Filter, Page

router = APIRouter(tags=["documents"], responses=FAILURES)

DocumentId = Annotated[str, Path(max_length=200)]
Number = Annotated[int, Path(ge=1, le=1_000_000, description="Position in the PDF, first is 1.")]
_FORM_BYTES = 64 * 1024
"""What a form may put around a file."""
_MOST_BOXES = 200
_MOST_POINTS = 20_000.0
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_FORM = {
    "schema": {
        "type": "object",
        "required": ["file"],
        "properties": {"file": {"type": "string", "format": "binary"}},
        "additionalProperties": False,
    }
}
_FILE_BODY = {
    "requestBody": {"required": True, "content": {"multipart/form-data": _FORM, **dict.fromkeys(MEDIA, _BINARY)}}
}


def _ingestion(request: Request) -> Ingestion:
    """Raises Unavailable where this service only reads."""
    ingestion = state_of(request)["ports"].ingestion
    if ingestion is None:
        raise Unavailable(
            "this service only reads its index: ACCEPT_UPLOADS is off, or its log says why it takes no documents; "
            "ingest with sextant-ingest"
        )
    return ingestion


@router.post(
    "/documents",
    status_code=202,
    responses={202: {"model": JobReply, "headers": {"Location": {"schema": {"type": "string"}}}}},
    openapi_extra=_FILE_BODY,
    summary="Upload a PDF, HTML or text filing; another file of the same name replaces it",
)
async def upload_document(
    request: Request,
    access: CallerAccess,
    filename: Annotated[str | None, Query(max_length=1000, description="Names a body that is the file itself.")] = None,
    acl: Annotated[
        list[str] | None, Query(max_length=100, description="Groups who may read it; default: as before, else public.")
    ] = None,
) -> Response:
    takes(request, "filename", "acl")
    ingestion = _ingestion(request)
    most, announced = state_of(request)["settings"].max_upload_bytes, request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > most + _FORM_BYTES:
        raise PayloadTooLarge(f"the file is larger than {most} bytes")
    name, content = await uploaded(request, filename)
    job = await ingestion.submit(name, content, access, tuple(sorted(set(acl))) if acl else None)
    return Json(job_reply(job), 202, {"Location": f"/jobs/{job.id}"})


@router.get(
    "/jobs", responses={200: {"model": JobsReply}}, summary="List uploads and what became of them, latest first"
)
async def list_jobs(
    request: Request, access: CallerAccess, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> Response:
    takes(request, "limit")
    jobs = await _ingestion(request).jobs(access)
    reply: JobsReply = {"jobs": [job_reply(job) for job in jobs[:limit]], "total": len(jobs)}
    return Json(reply)


@router.get("/jobs/{job_id}", responses={200: {"model": JobReply}}, summary="Follow an upload")
async def get_job(request: Request, access: CallerAccess, job_id: Annotated[str, Path(max_length=100)]) -> Response:
    job = await _ingestion(request).job(job_id, access)
    if job is None:
        raise NotFound(f"no job {job_id!r}; GET /jobs lists those there are")
    return Json(job_reply(job))


@router.get("/documents", responses={200: {"model": DocumentsReply}}, summary="List documents, ordered by id")
async def list_documents(
    request: Request,
    access: CallerAccess,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    takes(request, "offset", "limit")
    documents = await state_of(request)["ports"].store.documents(access)
    page = documents[offset : offset + limit]
    reply: DocumentsReply = {
        "documents": [document_reply(document) for document in page],
        "total": len(documents),
        "offset": offset,
        "limit": limit,
    }
    return Json(reply)


@router.get("/documents/{document_id}", responses={200: {"model": DocumentReply}}, summary="Describe a document")
async def get_document(request: Request, access: CallerAccess, document_id: DocumentId) -> Response:
    return Json(document_reply(await _document(request, access, document_id)))


@router.delete(
    "/documents/{document_id}",
    responses={200: {"model": RemovedReply}},
    summary="Remove a document and all that came from it",
)
async def delete_document(request: Request, access: CallerAccess, document_id: DocumentId) -> Response:
    removed = await _ingestion(request).delete(document_id, access)
    state_of(request)["ports"].catalogue.forget()
    return Json(removed_reply(document_id, removed))


@router.get(
    "/documents/{document_id}/pages/{number}.png",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}}, 304: {"description": "The picture that If-None-Match names."}},
    summary="See a page as it was printed, with what is quoted marked",
)
async def get_page_image(
    request: Request,
    access: CallerAccess,
    document_id: DocumentId,
    number: Number,
    boxes: Annotated[str, Query(max_length=8000, description="x0,y0,x1,y1;... as citations have them.")] = "",
    span: Annotated[str, Query(max_length=40, description="start,end in the page's text, instead of boxes.")] = "",
    chunk_id: Annotated[str, Query(max_length=100, description="A passage of the page, instead of boxes.")] = "",
    dpi: Annotated[int, Query(ge=36, le=300)] = 110,
) -> Response:
    takes(request, "boxes", "span", "chunk_id", "dpi")
    document, page = await _document(request, access, document_id), await _page(request, access, document_id, number)
    images = state_of(request)["ports"].images
    if images is None or not page.width:
        raise NotFound(
            "there is no picture of this page: HTML and text filings have no pages to draw"
            if images
            else "this service draws no pages"
        )
    spans = [_span(span)] if span else []
    if chunk_id:
        spans.append(await _slice(request, access, (document_id, number), chunk_id))
    marked = (*_boxes(boxes), *(box for each in spans for box in boxes_of(page, *each)))
    named = repr((document.sha256, number, marked, dpi)).encode()
    headers = {"ETag": f'"{hashlib.sha256(named).hexdigest()[:32]}"', "Cache-Control": "private, no-cache"}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    png = await images.png(document, number, marked[:_MOST_BOXES], dpi)
    return Response(png, media_type="image/png", headers=headers)


@router.get(
    "/documents/{document_id}/pages/{number}", responses={200: {"model": PageReply}}, summary="Read a page as stored"
)
async def get_page(request: Request, access: CallerAccess, document_id: DocumentId, number: Number) -> Response:
    return Json(page_reply(document_id, await _page(request, access, document_id, number)))


async def _document(request: Request, access: Access, document_id: str) -> Document:
    """Raises NotFound."""
    for document in await state_of(request)["ports"].store.documents(access):
        if document.id == document_id:
            return document
    raise NotFound(f"no document {document_id!r}; GET /documents lists those there are")


async def _page(request: Request, access: Access, document_id: str, number: int) -> Page:
    """Raises NotFound."""
    [page] = await state_of(request)["ports"].store.pages([(document_id, number)], access)
    if page is None:
        raise NotFound(f"no page {number} of a document {document_id!r}")
    return page


async def _slice(request: Request, access: Access, of: tuple[str, int], chunk_id: str) -> tuple[int, int]:
    """Where a passage stands in its page's text. Raises NotFound where it is none of the page's."""
    try:
        chunks = await state_of(request)["ports"].store.chunks([str(uuid.UUID(chunk_id))], Filter(access=access))
    except ValueError:
        chunks = []
    for chunk in chunks:
        if (chunk.document_id, chunk.page) == of:
            return chunk.start, chunk.end
    raise NotFound(f"no passage {chunk_id!r} on page {of[1]} of {of[0]!r}")


def _boxes(text: str) -> list[Box]:
    """Raises InvalidInput."""
    found = [_numbers(part, 4, "query.boxes: four numbers each, x0,y0,x1,y1;...") for part in text.split(";") if part]
    if len(found) > _MOST_BOXES:
        raise InvalidInput(f"query.boxes: at most {_MOST_BOXES}")
    return [(x0, y0, x1, y1) for x0, y0, x1, y1 in found]


def _span(text: str) -> tuple[int, int]:
    """Raises InvalidInput."""
    start, end = _numbers(text, 2, "query.span: two numbers, start,end")
    if not 0 <= start < end:
        raise InvalidInput("query.span: start from 0, end after it")
    return int(start), int(end)


def _numbers(text: str, count: int, wanted: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(wanted) from None
    if len(numbers) != count or not all(math.isfinite(number) for number in numbers):
        raise InvalidInput(wanted)
    return [max(-_MOST_POINTS, min(number, _MOST_POINTS)) for number in numbers]
