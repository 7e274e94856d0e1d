"""Fields tell what is written below them, just as pydantic would find it."""

from pydantic import BaseModel, ConfigDict, Field

from codespace.domain.attribute_docs import Described
from codespace.domain.tool import Result


class Plain(Described):
    """A model of ours."""

    first: int
    """What comes first,
    and a second line.
    """
    second: int = Field(default=2, description="Said elsewhere.")
    """Not taken."""
    third: int = 3
    fourth: int = 4

    class Inner(Described):
        field: int
        """Within."""


class Own(BaseModel):
    """The same by pydantic's own search."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    first: int
    """What comes first,
    and a second line.
    """
    second: int = Field(default=2, description="Said elsewhere.")
    """Not taken."""
    third: int = 3
    fourth: int = 4


def descriptions(model: type[BaseModel]) -> dict[str, str | None]:
    return {name: field.description for name, field in model.model_fields.items()}


def test_fields_get_the_text_below_them_where_they_have_no_other() -> None:
    assert descriptions(Plain) == descriptions(Own)
    properties = Plain.model_json_schema()["properties"]
    assert properties["first"]["description"] == "What comes first,\nand a second line."
    assert "description" not in properties["third"]


def test_a_class_inside_another_and_one_inside_a_function_are_found() -> None:
    class Local(Described):
        field: int
        """Here."""

    assert descriptions(Plain.Inner) == {"field": "Within."}
    assert descriptions(Local) == {"field": "Here."}


class Parent(Result):
    """A result of a tool."""

    a: int
    """Of the parent."""


class Child(Parent):
    b: int
    """Of the child."""


def test_results_of_tools_are_described_with_what_they_inherit() -> None:
    assert descriptions(Child) == {"a": "Of the parent.", "b": "Of the child."}


def test_a_class_without_source_is_left_as_it_is() -> None:
    made = type("Made", (Result,), {"__annotations__": {"a": int}, "__module__": "nowhere"})

    assert issubclass(made, Result)
    assert descriptions(made) == {"a": None}
