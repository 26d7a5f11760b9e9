"""Figures over HTTP: read-only SQL over the numbers of the filings that the caller may see."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from app.adapters.figures_sqlite import COLUMNS
from app.http.access import CallerAccess
from app.http.problems import FAILURES
from app.http.query import json_only
from app.http.replies import CostReply, Json, cost_reply
from app.http.running import unless_gone
from app.http.schemas import NotBool
from app.http.state import state_of
from app.tools import Tools
from app.types import Limits

router = APIRouter(tags=["figures"], responses=FAILURES)

_EXAMPLE = (
    "SELECT company, period_end, scaled_value, unit, document_id, page FROM figures"
    " WHERE label LIKE '%total assets' AND fiscal_year = 2022 ORDER BY company, period_end"
)


class FiguresBody(BaseModel):
    model_config = ConfigDict(extra="forbid")
    sql: Annotated[
        str,
        Field(
            min_length=1,
            max_length=10_000,
            description=f"One SELECT, in SQLite's dialect, over the view figures({', '.join(COLUMNS)}).",
            examples=[_EXAMPLE],
        ),
    ]
    limit: Annotated[int, Field(ge=1, le=1000, description="Rows."), NotBool] = 100


class FiguresReply(TypedDict):
    columns: list[str]
    rows: list[list[Any]]
    """Each in the columns' order: numbers, text or null."""
    truncated: bool
    """More rows matched than the limit."""
    cost: CostReply
    request_id: str


@router.post(
    "/figures/query",
    dependencies=[Depends(json_only)],
    responses={200: {"model": FiguresReply}},
    summary="Query the figures of the filings with SQL",
)
async def query_figures(request: Request, access: CallerAccess, body: FiguresBody) -> Response:
    state = state_of(request)
    limits = Limits(timeout_s=state["settings"].request_timeout_s)
    state["tools"] = tools = Tools(state["ports"], limits, access)
    rows = await unless_gone(request, tools.sql(body.sql, limit=body.limit))
    reply: FiguresReply = {
        "columns": list(rows.columns),
        "rows": [list(row) for row in rows.rows],
        "truncated": rows.truncated,
        "cost": cost_reply(tools.cost),
        "request_id": state["request_id"],
    }
    return Json(reply)
