"""What is written under the attributes of a class, as the descriptions of a model's fields.

pydantic can do this itself, but it searches all loaded modules for each class: a tenth of a
gateway's start.
"""

import ast
import inspect
import linecache
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise

from pydantic import BaseModel, ConfigDict

Docs = Mapping[str, Mapping[str, str]]


class Described(BaseModel):
    """Base of models whose fields are described by the texts below them.

    A description of a field's own goes before. A model is built when it is first used.
    """

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        """Read what the class has below its fields."""
        texts = _docs_of(cls.__module__).get(cls.__qualname__, {})
        for name, field in cls.model_fields.items():
            if field.description is None and name in texts:
                field.description = texts[name]


@cache
def _docs_of(module: str) -> Docs:
    path = getattr(sys.modules.get(module), "__file__", None)
    source = "".join(linecache.getlines(path)) if isinstance(path, str) else ""
    return {name: dict(_texts(found)) for name, found in _classes(ast.parse(source), "")}


def _classes(tree: ast.AST, prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.ClassDef():
                yield f"{prefix}{node.name}", node
                yield from _classes(node, f"{prefix}{node.name}.")
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _classes(node, f"{prefix}{node.name}.<locals>.")
            case _:
                continue


def _texts(found: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for before, node in pairwise(found.body):
        match before, node:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as text)),
            ):
                yield name, inspect.cleandoc(text)
            case _:
                continue
