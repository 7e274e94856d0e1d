"""The routes of the inbox, each one value: address, what it takes, what it does, what it gives."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from codespace.adapters.inbox_models import (
    ApprovalList,
    Decision,
    IntentEdit,
    IntentList,
    IntentRevision,
    IntentView,
    NewIntent,
    NewOrder,
    StopRequest,
    StopResult,
    WorkList,
    WorkView,
    intent_view,
    work_view,
)
from codespace.domain.approval import Resolver
from codespace.domain.errors import CodeSpaceError, ErrorCode
from codespace.domain.ids import ApprovalId, IntentId, WorkId, WorkspaceId
from codespace.domain.tool import Json, Params, Result
from codespace.domain.work import Delivery, IntentKind
from codespace.gateway.approval_views import ApprovalDetail, ApprovalView
from codespace.gateway.approvals import Approvals
from codespace.gateway.stops import Stops
from codespace.gateway.works import Wish, Works


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that fits its route. `id` is what stands in its path, `query` its one parameter."""

    id: str = ""
    query: str | None = None
    body: Params | None = None

    def has(self, model: type["B"]) -> "B":
        """Return the body, which the router has judged by the route's model."""
        if not isinstance(self.body, model):
            raise TypeError(model.__name__)
        return self.body


B = TypeVar("B", bound=Params)
Given = Result | Json


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one address.

    Attributes:
        path: with `{id}` where an identifier stands.
        does: for the description.
        query: the name of the one parameter that it takes.
        takes: the model of its body.
        gives: the model of its answer; `None` for an object that says itself what it is.
        status: of a good answer.
        empty: its body may be left out.
        refusals: the statuses that it answers beside 422.
    """

    method: str
    path: str
    does: str
    run: Callable[[Asked], Awaitable[Given]]
    gives: type[Result] | None = None
    takes: type[Params] | None = None
    query: str | None = None
    status: int = 200
    empty: bool = False
    refusals: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Inbox:
    """The user's side of steering."""

    works: Works
    stops: Stops

    def routes(self) -> list[Route]:
        """Return the routes of works and instructions."""
        known, changing = (404,), (404, 409)
        return [
            Route(
                "GET",
                "/inbox/works",
                "List works, the open ones first",
                self._list,
                WorkList,
                query="workspace_id",
            ),
            Route("GET", "/inbox/works/{id}", "Show a work", self._show, WorkView, refusals=known),
            Route(
                "GET",
                "/inbox/works/{id}/intents",
                "List the instructions of a work",
                self._intents,
                IntentList,
                refusals=known,
            ),
            Route(
                "POST",
                "/inbox/works/{id}/intents",
                "Write an instruction, as a draft",
                self._add,
                IntentView,
                NewIntent,
                status=201,
                refusals=changing,
            ),
            Route(
                "PATCH",
                "/inbox/intents/{id}",
                "Edit a draft or a queued instruction",
                self._edit,
                IntentView,
                IntentEdit,
                refusals=changing,
            ),
            Route(
                "POST",
                "/inbox/intents/{id}/queue",
                "Put a draft at the end of the queue",
                self._queue,
                IntentView,
                IntentRevision,
                refusals=changing,
            ),
            Route(
                "POST",
                "/inbox/intents/{id}/cancel",
                "Withdraw an instruction",
                self._cancel,
                IntentView,
                IntentRevision,
                refusals=changing,
            ),
            Route(
                "POST",
                "/inbox/works/{id}/reorder",
                "Give the queue a new order",
                self._reorder,
                IntentList,
                NewOrder,
                refusals=changing,
            ),
            Route(
                "POST",
                "/inbox/works/{id}/stop",
                "End what runs, and tell the agent",
                self._stop,
                StopResult,
                StopRequest,
                empty=True,
                refusals=changing,
            ),
        ]

    async def _list(self, asked: Asked) -> WorkList:
        workspace_id = None if asked.query is None else WorkspaceId(asked.query)
        works = await self.works.listed(workspace_id)
        return WorkList(works=[work_view(work) for work in works])

    async def _show(self, asked: Asked) -> WorkView:
        return work_view(await self.works.find(WorkId(asked.id)))

    async def _intents(self, asked: Asked) -> IntentList:
        work = await self.works.find(WorkId(asked.id))
        intents = await self.works.intents(work.work_id)
        return IntentList(work=work_view(work), intents=[intent_view(intent) for intent in intents])

    async def _add(self, asked: Asked) -> IntentView:
        given = asked.has(NewIntent)
        wish = Wish(given.body, IntentKind(given.kind), Delivery(given.delivery))
        return intent_view(await self.works.add(WorkId(asked.id), wish))

    async def _edit(self, asked: Asked) -> IntentView:
        given = asked.has(IntentEdit)
        delivery = None if given.delivery is None else Delivery(given.delivery)
        return intent_view(
            await self.works.edit(
                IntentId(asked.id), given.revision, body=given.body, delivery=delivery
            )
        )

    async def _queue(self, asked: Asked) -> IntentView:
        seen = asked.has(IntentRevision).revision
        return intent_view(await self.works.queue(IntentId(asked.id), seen))

    async def _cancel(self, asked: Asked) -> IntentView:
        seen = asked.has(IntentRevision).revision
        return intent_view(await self.works.cancel(IntentId(asked.id), seen))

    async def _reorder(self, asked: Asked) -> IntentList:
        names = [IntentId(name) for name in asked.has(NewOrder).intent_ids]
        if len(set(names)) < len(names):
            raise CodeSpaceError(
                ErrorCode.INVALID_ARGUMENT,
                "intent_ids: name each instruction once.",
                details={"path": "intent_ids"},
            )
        await self.works.reorder(WorkId(asked.id), names)
        return await self._intents(asked)

    async def _stop(self, asked: Asked) -> StopResult:
        stopped = await self.stops.stop(WorkId(asked.id), asked.has(StopRequest).reason)
        return StopResult(killed=stopped.killed, intent=intent_view(stopped.notice))


def approval_routes(approvals: Approvals) -> list[Route]:
    """Return the routes of held calls."""

    async def listed(asked: Asked) -> ApprovalList:
        workspace_id = None if asked.query is None else WorkspaceId(asked.query)
        return ApprovalList(approvals=await approvals.listed(workspace_id))

    async def shown(asked: Asked) -> ApprovalDetail:
        return await approvals.shown(ApprovalId(asked.id))

    async def resolve(asked: Asked) -> ApprovalView:
        decision = asked.has(Decision).decision
        return await approvals.resolve(ApprovalId(asked.id), decision, by=Resolver.OPERATOR)

    address = "/inbox/approvals/{id}"
    return [
        Route(
            "GET",
            "/inbox/approvals",
            "List the held calls",
            listed,
            ApprovalList,
            query="workspace_id",
        ),
        Route(
            "GET",
            address,
            "Show what a held call would do",
            shown,
            ApprovalDetail,
            refusals=(404,),
        ),
        Route(
            "POST",
            address,
            "Grant or deny a held call",
            resolve,
            ApprovalView,
            Decision,
            refusals=(403, 404, 409),
        ),
    ]


def by_path(routes: list[Route]) -> Mapping[str, Mapping[str, Route]]:
    """Return the routes by path, and there by method."""
    found: dict[str, dict[str, Route]] = {}
    for route in routes:
        found.setdefault(route.path, {})[route.method] = route
    return found
