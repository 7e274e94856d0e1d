"""The protocol's own conformance suite, as far as it needs no tools made for it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from contract.answers import Json, Reply
from contract.houses import House
from programs.foreign import CONFORMANCE, Ended, run_node

WHOLE = [
    ("2025-11-25", "server-initialize"),
    ("2025-11-25", "server-session-lifecycle"),
    ("2025-11-25", "ping"),
    ("2025-11-25", "tools-list"),
    ("2025-11-25", "dns-rebinding-protection"),
    ("2025-11-25", "server-sse-multiple-streams"),
    ("2026-07-28", "tools-list"),
    ("2026-07-28", "dns-rebinding-protection"),
    ("2026-07-28", "server-sse-multiple-streams"),
    ("2026-07-28", "http-header-validation"),
    ("2026-07-28", "input-required-result-unsupported-methods"),
]
"""Revision and scenario."""

NEED_TOOLS_OF_THE_SUITE = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}
NEED_PROMPTS_OR_RESOURCES = {
    "sep-2549-prompts-list-caching-hints",
    "sep-2549-resources-list-caching-hints",
    "sep-2549-resources-templates-list-caching-hints",
}


@dataclass(frozen=True, slots=True)
class Suite:
    """The suite, and a gateway without a token for it to ask: it has no way to send one."""

    url: str
    home: Path

    def run(self, revision: str, scenario: str) -> tuple[Ended, list[Reply]]:
        """Run a scenario, and return how the program ended and what it checked."""
        ended = run_node(
            CONFORMANCE,
            *("server", "--url", self.url, "--scenario", scenario),
            *("--spec-version", revision, "--output-dir", str(self.home / "report")),
            home=self.home,
        )
        [report] = (self.home / "report").rglob("checks.json")
        checks = cast("list[Json]", json.loads(report.read_bytes()))
        return ended, [Reply(check) for check in checks]


@pytest.fixture
def suite(house: House, tmp_path: Path) -> Suite:
    return Suite(house.url, tmp_path)


@pytest.mark.requirement("transports.baseline", "transports.modern")
@pytest.mark.parametrize(("revision", "scenario"), WHOLE)
def test_every_check_of_a_scenario_passes(revision: str, scenario: str, suite: Suite) -> None:
    ended, checks = suite.run(revision, scenario)
    assert ended.code == 0, ended.out
    assert {check["status"] for check in checks} <= {"SUCCESS", "INFO"}
    assert "SUCCESS" in {check["status"] for check in checks}


def test_only_the_checks_that_need_tools_of_the_suite_cannot_be_made(suite: Suite) -> None:
    _, checks = suite.run("2026-07-28", "server-stateless")
    failed = failures(checks)
    assert {check["id"] for check in failed} == NEED_TOOLS_OF_THE_SUITE
    assert all(check["details", "untestable"] is True for check in failed)
    assert sum(check["status"] == "SUCCESS" for check in checks) >= 20


def test_only_the_checks_of_prompts_and_resources_find_nothing(suite: Suite) -> None:
    _, checks = suite.run("2026-07-28", "caching")
    failed = failures(checks)
    assert {check["id"] for check in failed} == NEED_PROMPTS_OR_RESOURCES
    assert all(check["details", "error", "code"] == -32601 for check in failed)


def test_a_resource_that_nobody_offers_is_refused(suite: Suite) -> None:
    # The suite warns that the code is the one of a method, not of a resource: there are none here.
    ended, checks = suite.run("2026-07-28", "sep-2164-resource-not-found")
    assert ended.code == 0, ended.out
    assert failures(checks) == []


def failures(checks: list[Reply]) -> list[Reply]:
    """Return the checks that failed."""
    return [check for check in checks if check["status"] == "FAILURE"]
