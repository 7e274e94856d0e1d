"""What is added to a run's outcome: effects that stay, values too long, scripts in scripts."""

import pytest

from codespace.codemode.outcome import ErrorKind, Outcome, RunError, RunStatus
from codespace.gateway.script_outcomes import fitting, size, without_nesting

pytestmark = pytest.mark.anyio


async def test_a_value_that_fits_stays_as_it_is() -> None:
    outcome = Outcome(RunStatus.COMPLETED, value=[1, 2])
    assert await fitting(outcome, 100, None) is outcome


async def test_a_value_that_is_too_long_goes_to_a_file_or_is_gone_and_that_is_said() -> None:
    async def save(text: str) -> str:
        return f"file of {len(text)}"

    outcome = Outcome(RunStatus.COMPLETED, value="x" * 100)
    kept = await fitting(outcome, 50, save)
    assert kept.value is None
    assert "it is in file of 102" in kept.problems[0].message
    assert "it is not kept" in (await fitting(outcome, 50, None)).problems[0].message


async def test_the_size_is_about_what_is_kept() -> None:
    assert size(Outcome(RunStatus.COMPLETED, value="é" * 10)) == 12
    assert size(Outcome(RunStatus.CANCELLED)) == 0


async def test_who_nests_scripts_is_told_why_there_are_none_in_one() -> None:
    def failed(message: str) -> Outcome:
        return Outcome(RunStatus.FAILED, error=RunError(ErrorKind.SCRIPT, "TypeError", message))

    told = without_nesting(failed("unknown tool 'codemode'")).error
    assert told is not None
    assert told.message.endswith("do its work right here")
    other = failed("unknown tool 'codemood'")
    assert without_nesting(other) is other
