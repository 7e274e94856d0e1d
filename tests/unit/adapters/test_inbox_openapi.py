"""The description says of each route what it takes, gives and refuses."""

import json
import re
from typing import cast

from codespace.adapters.inbox_models import NewIntent, WorkList
from codespace.adapters.inbox_openapi import ALWAYS, describe
from codespace.adapters.inbox_routes import Asked, Route
from codespace.domain.tool import Json


async def never(asked: Asked) -> Json:
    raise NotImplementedError


ROUTES = [
    Route("GET", "/inbox/works", "List", never, WorkList, query="workspace_id"),
    Route(
        "POST",
        "/inbox/works/{id}/intents",
        "Add",
        never,
        takes=NewIntent,
        status=201,
        empty=True,
        refusals=(404,),
    ),
]


def test_every_reference_leads_somewhere() -> None:
    described = describe(ROUTES, "9")
    text = json.dumps(described)
    named = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    components = cast("dict[str, Json]", described["components"])
    assert named <= set(components["schemas"])
    assert {"NewIntent", "WorkList", "WorkView", "ToolError"} <= set(components["schemas"])


def test_an_operation_has_its_parameters_its_body_and_all_its_answers() -> None:
    paths = cast("dict[str, dict[str, dict[str, object]]]", describe(ROUTES, "9")["paths"])
    listing = paths["/inbox/works"]["get"]
    adding = paths["/inbox/works/{id}/intents"]["post"]
    assert [p["name"] for p in cast("list[Json]", listing["parameters"])] == ["workspace_id"]
    assert [p["in"] for p in cast("list[Json]", adding["parameters"])] == ["path"]
    assert "requestBody" not in listing
    assert cast("Json", adding["requestBody"])["required"] is False
    assert set(cast("Json", listing["responses"])) == {"200", *map(str, ALWAYS)}
    assert set(cast("Json", adding["responses"])) == {"201", "404", *map(str, ALWAYS)}
    assert listing["operationId"] != adding["operationId"]
