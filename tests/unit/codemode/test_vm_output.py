from codespace.codemode import protocol
from codespace.codemode.protocol import Call, Failed, Level, Limits, Operation, Returned, Text
from codespace.codemode.vm import Vm
from codespace.domain.sizes import MIB
from doubles.machines import START_MS, machine, opening

LIMITS = Limits(output_bytes=1000)


def told(code: str, *, limits: Limits | None = None) -> list[Operation]:
    vm = Vm(machine())
    return vm.step(opening(code, tools={"a": str}, limits=limits))


def texts(operations: list[Operation]) -> list[Text]:
    return [each for each in operations if isinstance(each, Text)]


def test_pieces_that_follow_one_another_are_lines_of_one_text() -> None:
    found = texts(told(r"text('a\n\"'); text(''); text({b: 'ü'}); text(); text('\\')"))
    assert found == [Text(Level.TEXT, 'a\n"\n\n{"b":"ü"}\n\n\\')]


def test_another_level_and_anything_in_between_begin_a_new_text() -> None:
    code = "text(1); console.log(2); console.log(3); text(4); tools.a({}); text(5); text(6)"
    found = told(code)
    assert texts(found) == [
        Text(Level.TEXT, "1"),
        Text(Level.LOG, "2\n3"),
        Text(Level.TEXT, "4"),
        Text(Level.TEXT, "5\n6"),
    ]
    assert isinstance(found[3], Call)


def test_a_piece_above_the_limit_leaves_those_around_it_whole() -> None:
    code = "text('a'); text('b'); try { text('x'.repeat(2000)) } catch {} text('c'); text('d')"
    assert told(code, limits=LIMITS) == [
        Text(Level.TEXT, "a\nb\nc\nd"),
        Returned(None, given=False),
    ]


def test_a_piece_that_memory_has_no_room_for_leaves_those_before_it_whole() -> None:
    vm = Vm(machine(), memory_bytes=8 * MIB)
    found = vm.step(opening("const piece = 'x'.repeat(300_000); for (;;) text(piece)"))
    assert isinstance(found[-1], Failed)
    (all_of_it,) = texts(found)
    pieces = all_of_it.text.split("\n")
    assert len(pieces) > 2
    assert set(pieces) == {"x" * 300_000}


def test_a_text_of_a_later_step_is_one_of_its_own() -> None:
    vm = Vm(machine())
    first = vm.step(opening("text('x'); await tools.a({}); text('y'); text('z')", tools={"a": str}))
    assert texts(first) == [Text(Level.TEXT, "x")]
    later = vm.step(protocol.step_input(START_MS, [protocol.resolve(1, None)]))
    assert texts(later) == [Text(Level.TEXT, "y\nz")]
