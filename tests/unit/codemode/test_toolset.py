from codespace.codemode import protocol
from codespace.codemode.tool import Tool
from codespace.codemode.toolset import Toolset


async def _nothing(arguments: object) -> None:
    return None


def test_a_vm_is_told_both_names_of_each_tool() -> None:
    toolset = Toolset([Tool("read", _nothing), Tool("a-b", _nothing)])

    assert toolset.records[0] == protocol.tools([(0, "read"), (1, "a_b"), (1, "a-b")])


def test_only_a_schema_is_checked() -> None:
    toolset = Toolset([Tool("a", _nothing, input_schema={"type": "object"}), Tool("b", _nothing)])

    assert toolset.input_checker(0) is not None
    assert toolset.input_checker(1) is None
    assert toolset.output_checker(0) is None
