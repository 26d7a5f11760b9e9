"""A stand-in for a Qdrant server: the part of its REST interface the store uses, over the embedded engine.

It runs on a free loopback port in a thread, so the real client speaks real HTTP to the real segment engine. It reports
hardware usage as a server does: the bytes of the dense vectors a search scored.
"""

import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import qdrant_edge as edge
import uvicorn
from qdrant_client import models
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from app.adapters.qdrant_edge import edge_filter

Body = dict[str, Any]
_DONE = {"operation_id": 0, "status": "completed"}
_SCHEMAS = {
    "keyword": edge.PayloadSchemaType.Keyword,
    "integer": edge.PayloadSchemaType.Integer,
    "datetime": edge.PayloadSchemaType.Datetime,
}


class Missing(Exception):
    """A collection that does not exist: 404."""


@dataclass
class Collection:
    config: Body
    shard: edge.EdgeShard
    size: int
    """Dimensions of the dense vector, 0 where there is none."""

    def upsert(self, body: Body) -> Body:
        points = [
            edge.Point(id=p["id"], vector={n: _vector(v) for n, v in p["vector"].items()}, payload=p.get("payload"))
            for p in body["points"]
        ]
        self.shard.update(edge.UpdateOperation.upsert_points(points))
        return _DONE

    def delete(self, body: Body) -> Body:
        self.shard.update(edge.UpdateOperation.delete_points(body["points"]))
        return _DONE

    def set_payload(self, body: Body) -> Body:
        chosen = edge_filter(body["filter"])
        self.shard.update(edge.UpdateOperation.set_payload_by_filter(chosen, body["payload"]))
        return _DONE

    def index(self, body: Body) -> Body:
        schema = body["field_schema"]
        kind = edge.KeywordIndexParams(is_tenant=True) if isinstance(schema, dict) else _SCHEMAS[schema]
        self.shard.update(edge.UpdateOperation.create_field_index(body["field_name"], kind))
        return _DONE

    def query(self, body: Body) -> Body:
        points = self.shard.query(
            edge.QueryRequest(
                limit=body["limit"],
                query=edge.Query.Nearest(_vector(body["query"]), using=body["using"]),
                filter=edge_filter(body["filter"]),
                with_payload=body["with_payload"],
            )
        )
        return {"points": [{"id": str(p.id), "version": 0, "score": p.score, "payload": p.payload} for p in points]}

    def count(self, body: Body) -> int:
        return self.shard.count(edge.CountRequest(exact=True, filter=_filter(body)))

    def scroll(self, body: Body) -> Body:
        request = edge.ScrollRequest(
            offset=body.get("offset"),
            limit=body["limit"],
            filter=_filter(body),
            with_payload=body["with_payload"],
            with_vector=body.get("with_vector", False),
        )
        records, following = self.shard.scroll(request)
        return {
            "points": [{"id": str(r.id), "payload": r.payload, "vector": r.vector} for r in records],
            "next_page_offset": None if following is None else str(following),
        }


@dataclass
class EdgeRest:
    """Collections and aliases of one stand-in, and the paths that were requested."""

    root: Path
    reports: bool = False
    """Whether replies carry hardware usage."""
    collections: dict[str, Collection] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def find(self, name: str) -> Collection:
        try:
            return self.collections[self.aliases.get(name, name)]
        except KeyError:
            raise Missing(f"Not found: Collection `{name}` doesn't exist!") from None

    def create(self, name: str, body: Body) -> bool:
        dense = {key: value["size"] for key, value in (body.get("vectors") or {}).items()}
        sparse = {
            key: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf if value.get("modifier") == "idf" else None)
            for key, value in (body.get("sparse_vectors") or {}).items()
        }
        config = edge.EdgeConfig(
            vectors={
                key: edge.EdgeVectorParams(size=size, distance=edge.Distance.Cosine) for key, size in dense.items()
            },
            sparse_vectors=sparse or {"none": edge.EdgeSparseVectorParams()},
        )
        shard = edge.EdgeShard.create(str(self.root / name), config)
        self.collections[name] = Collection(body, shard, dense.get("dense", 0))
        return True

    def info(self, name: str) -> Body:
        metadata = self.find(name).config.get("metadata")
        config = {
            "params": {},
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000},
            "optimizer_config": {
                "deleted_threshold": 0.2,
                "vacuum_min_vector_number": 1000,
                "default_segment_number": 0,
                "flush_interval_sec": 5,
            },
            "metadata": metadata,
        }
        known = {"status": "green", "optimizer_status": "ok", "segments_count": 1, "config": config}
        return models.CollectionInfo.model_validate(known | {"payload_schema": {}}).model_dump(mode="json")

    def switch_aliases(self, body: Body) -> bool:
        """All of them or none."""
        aliases = dict(self.aliases)
        for action in body["actions"]:
            if made := action.get("create_alias"):
                if made["collection_name"] not in self.collections:
                    raise Missing(f"Not found: Collection `{made['collection_name']}` doesn't exist!")
                aliases[made["alias_name"]] = made["collection_name"]
            else:
                del aliases[action["delete_alias"]["alias_name"]]
        self.aliases = aliases
        return True

    def remove(self, name: str) -> bool:
        """With its aliases, as the server does."""
        self.collections.pop(name).shard.close()
        shutil.rmtree(self.root / name)
        self.aliases = {alias: target for alias, target in self.aliases.items() if target != name}
        return True

    def listed_aliases(self) -> Body:
        pairs = [{"alias_name": alias, "collection_name": target} for alias, target in self.aliases.items()]
        return {"aliases": pairs}

    def query_batch(self, name: str, body: Body) -> tuple[list[Body], Body | None]:
        collection = self.find(name)
        replies = [collection.query(search) for search in body["searches"]]
        scored = sum(collection.count(search) for search in body["searches"] if search["using"] == "dense")
        hardware = dict.fromkeys(models.HardwareUsage.model_fields, 0) | {"cpu": scored * collection.size * 4}
        return replies, {"hardware": hardware} if self.reports else None

    def close(self) -> None:
        for collection in self.collections.values():
            collection.shard.close()

    def app(self) -> Starlette:
        def point_routes(path: str, method: str, act: Callable[[Collection, Body], Any]) -> Route:
            return self._route(f"/collections/{{name}}{path}", method, lambda name, body: act(self.find(name), body))

        return Starlette(
            routes=[
                self._route("/collections/aliases", "POST", lambda _, body: self.switch_aliases(body)),
                self._route("/aliases", "GET", lambda _, __: self.listed_aliases()),
                self._route(
                    "/collections", "GET", lambda _, __: {"collections": [{"name": n} for n in self.collections]}
                ),
                self._route("/collections/{name}", "DELETE", lambda name, _: self.remove(name)),
                self._route("/collections/{name}/exists", "GET", lambda name, _: {"exists": self._exists(name)}),
                self._route("/collections/{name}", "GET", lambda name, _: self.info(name)),
                self._route("/collections/{name}", "PUT", self.create),
                self._route("/collections/{name}/points/query/batch", "POST", self.query_batch),
                point_routes("/index", "PUT", Collection.index),
                point_routes("/points", "PUT", Collection.upsert),
                point_routes("/points/delete", "POST", Collection.delete),
                point_routes("/points/payload", "POST", Collection.set_payload),
                point_routes("/points/count", "POST", lambda found, body: {"count": found.count(body)}),
                point_routes("/points/scroll", "POST", Collection.scroll),
            ]
        )

    def _route(self, path: str, method: str, act: Callable[[str, Body], Any]) -> Route:
        async def endpoint(request: Request) -> JSONResponse:
            self.requests.append(request.url.path)
            raw = await request.body()
            try:
                result = act(request.path_params.get("name", ""), json.loads(raw) if raw else {})
            except Missing as exc:
                return JSONResponse({"status": {"error": str(exc)}, "time": 0.0}, 404)
            except (KeyError, ValueError, TypeError) as exc:
                return JSONResponse({"status": {"error": str(exc)}, "time": 0.0}, 400)
            result, usage = result if isinstance(result, tuple) else (result, None)
            return JSONResponse({"result": result, "status": "ok", "time": 0.0, "usage": usage})

        return Route(path, endpoint, methods=[method])

    def _exists(self, name: str) -> bool:
        return self.aliases.get(name, name) in self.collections


def _vector(value: Any) -> Any:
    return edge.SparseVector(value["indices"], value["values"]) if isinstance(value, Mapping) else value


def _filter(body: Body) -> edge.Filter | None:
    return edge_filter(body["filter"]) if body.get("filter") else None


@contextmanager
def serve(app: Starlette) -> Iterator[str]:
    """The URL of an application on a free loopback port, while it runs."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started and thread.is_alive():
                thread.join(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
