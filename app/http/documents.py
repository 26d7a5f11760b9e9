"""What the index holds, as far as the caller may see it."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from app.errors import NotFound
from app.http.access import CallerAccess
from app.http.problems import FAILURES
from app.http.replies import DocumentReply, DocumentsReply, Json, PageReply, document_reply, page_reply
from app.http.state import state_of

router = APIRouter(tags=["documents"], responses=FAILURES)

DocumentId = Annotated[str, Path(max_length=200)]


@router.get("/documents", responses={200: {"model": DocumentsReply}}, summary="List documents, ordered by id")
async def list_documents(
    request: Request,
    access: CallerAccess,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
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
    for document in await state_of(request)["ports"].store.documents(access):
        if document.id == document_id:
            return Json(document_reply(document))
    raise NotFound(f"no document {document_id!r}; GET /documents lists those there are")


@router.get(
    "/documents/{document_id}/pages/{number}", responses={200: {"model": PageReply}}, summary="Read a page as stored"
)
async def get_page(
    request: Request,
    access: CallerAccess,
    document_id: DocumentId,
    number: Annotated[int, Path(ge=1, le=1_000_000, description="Position in the PDF, first is 1.")],
) -> Response:
    [page] = await state_of(request)["ports"].store.pages([(document_id, number)], access)
    if page is None:
        raise NotFound(f"no page {number} of a document {document_id!r}")
    return Json(page_reply(document_id, page))
