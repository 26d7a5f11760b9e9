"""The OpenAPI description: kept as a golden file, and kept honest by requests made from it."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import CheckContext, not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.core.transport import Response
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from app.architectures import ARCHITECTURES
from app.main import create_app
from app.settings import Caller, Settings
from app.tools import Ports
from tests.conftest import MakePorts
from tests.fakes import FakeFigures, FakeIngestion, FakeStore, ScriptedGenerator

GOLDEN = Path(__file__).parents[1] / "data" / "openapi.json"


def described() -> dict[str, Any]:
    def never(_: Settings) -> Any:
        raise AssertionError("describing the service opens nothing")

    found: dict[str, Any] = json.loads(json.dumps(create_app(never, Settings()).openapi()))
    return found | {"info": {**found["info"], "version": ""}}


def test_golden() -> None:
    """After a wanted change: UPDATE_GOLDEN=1 python -m pytest tests/http/test_openapi.py, and read the difference."""
    now = json.dumps(described(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(now, "utf-8")
    assert now == GOLDEN.read_text("utf-8")


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_architecture_has_its_typed_options(arch: str) -> None:
    description = described()
    body = description["paths"][f"/query/{arch}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    model = description["components"]["schemas"][body["$ref"].rpartition("/")[2]]
    options = model["properties"]["options"]
    assert set(options.get("properties", {})) == {field.name for field in fields(ARCHITECTURES[arch])}
    assert options["additionalProperties"] is False


def test_errors_are_described_as_problems() -> None:
    for path, operations in described()["paths"].items():
        for operation in operations.values():
            assert set(operation["responses"]) >= {"4XX", "5XX"}, path
            assert list(operation["responses"]["4XX"]["content"]) == ["application/problem+json"], path
            assert "422" not in operation["responses"], path


def no_server_error(context: CheckContext, response: Response, case: schemathesis.Case[Any]) -> bool | None:
    """A server error is a fault, unless the request's own `timeout_s` ended."""
    if response.status_code == 504 and "the request's" in response.json()["detail"]:
        return None
    return not_a_server_error(context, response, case)


@pytest.mark.parametrize("mode", schemathesis.GenerationMode)
def test_requests_made_from_the_description(make_ports: MakePorts, mode: schemathesis.GenerationMode) -> None:
    """Right and wrong ones alike get a described status and a body of the described shape, never a server error."""

    @asynccontextmanager
    async def open_ports(_: Settings) -> AsyncIterator[Ports]:
        ports = await make_ports(ScriptedGenerator(["Debt was $4 million [1]."]))
        assert isinstance(ports.store, FakeStore)
        yield replace(ports, ingestion=FakeIngestion(ports.store), figures=FakeFigures())

    schema = schemathesis.openapi.from_asgi(
        "/openapi.json", create_app(open_ports, Settings(api_keys={"a-key": Caller()}))
    )
    checks = [no_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    statuses = set()
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        if mode is schemathesis.GenerationMode.NEGATIVE and not (operation.body or operation.query):
            continue

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        def ask(case: schemathesis.Case[Any]) -> None:
            response = case.call_and_validate(checks=checks, headers={"x-api-key": "a-key"})
            statuses.add(response.status_code)

        ask()
    assert (200 in statuses) if mode is schemathesis.GenerationMode.POSITIVE else (422 in statuses)
