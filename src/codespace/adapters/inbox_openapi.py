"""The description of the inbox as OpenAPI 3.1, made of its routes and their models."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from codespace.adapters.inbox_routes import Route
from codespace.domain.tool import Json, ToolError

ID = r"^[A-Za-z0-9_-]{1,100}$"
ALWAYS = (401, 403, 405, 413, 415, 421, 422)
"""The refusals that any request may be answered with."""

_Mode = Literal["validation", "serialization"]


def describe(routes: Iterable[Route], version: str) -> Json:
    """Return the description of these routes."""
    routes = list(routes)
    refs, schemas = _schemas(routes)
    paths: dict[str, dict[str, object]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, refs)
    security: list[dict[str, list[str]]] = [{}, {"token": []}]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "CodeSpace inbox",
            "version": version,
            "description": "What the user of a running agent may say and decide.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": security,
    }


def _schemas(routes: list[Route]) -> tuple[Mapping[type[BaseModel], Json], Json]:
    wanted: dict[type[BaseModel], _Mode] = {ToolError: "serialization"}
    for route in routes:
        if route.takes is not None:
            wanted[route.takes] = "validation"
        if route.gives is not None:
            wanted[route.gives] = "serialization"
    refs, definitions = models_json_schema(
        list(wanted.items()), ref_template="#/components/schemas/{model}"
    )
    return {model: refs[model, mode] for model, mode in wanted.items()}, definitions["$defs"]


def _operation(route: Route, refs: Mapping[type[BaseModel], Json]) -> Json:
    gives = {"type": "object"} if route.gives is None else refs[route.gives]
    answers: dict[str, object] = {str(route.status): _content("The answer.", gives)}
    for status in sorted({*ALWAYS, *route.refusals}):
        answers[str(status)] = _content(HTTPStatus(status).phrase, refs[ToolError])
    operation: dict[str, object] = {
        "operationId": _name(route),
        "summary": route.does,
        "responses": answers,
    }
    parameters = _parameters(route)
    if parameters:
        operation["parameters"] = parameters
    if route.takes is not None:
        content = {"application/json": {"schema": refs[route.takes]}}
        operation["requestBody"] = {"required": not route.empty, "content": content}
    return operation


def _parameters(route: Route) -> list[Json]:
    found: list[Json] = []
    if "{id}" in route.path:
        schema = {"type": "string", "pattern": ID}
        found.append({"name": "id", "in": "path", "required": True, "schema": schema})
    if route.query is not None:
        schema = {"type": "string"}
        found.append({"name": route.query, "in": "query", "required": False, "schema": schema})
    return found


def _content(description: str, schema: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _name(route: Route) -> str:
    words = [part for part in route.path.split("/") if part not in ("", "inbox", "{id}")]
    one = ["one"] if route.path.endswith("{id}") else []
    return "_".join([route.method.lower(), *words, *one])
