"""Hypothesis strategies for documents and events: any instance of a msgspec type, field by field."""

import math
from collections.abc import Mapping
from typing import TypeVar

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

T = TypeVar("T", bound=msgspec.Struct)
Fields = Mapping[str, st.SearchStrategy[object]]

WHOLE = st.integers(-(2**63), 2**63 - 1)  # what the encoder can write
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SOME = 3  # elements of a sequence at most: no test needs more


def instances(kind: type[T], fields: Fields | None = None) -> st.SearchStrategy[T]:
    """Any instance of a type; ``fields`` are those whose values are not free. Optional fields are sometimes left out."""
    given = dict(fields or {})
    required, optional = {}, {}
    for field in msgspec.structs.fields(kind):
        values = given.pop(field.name) if field.name in given else _values(inspect.type_info(field.type))
        (required if field.required else optional)[field.name] = values
    assert not given, f"{kind.__name__} has no field {', '.join(given)}"
    return st.fixed_dictionaries(required, optional=optional).map(lambda values: kind(**values))


def _values(kind: inspect.Type) -> st.SearchStrategy[object]:
    match kind:
        case inspect.StrType():
            return st.text(max_size=10)
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            return WHOLE
        case inspect.FloatType():
            return NUMBERS
        case inspect.NoneType():
            return st.none()
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.VarTupleType():
            return st.lists(_values(kind.item_type), max_size=SOME).map(tuple)
        case inspect.DictType():
            return st.dictionaries(_values(kind.key_type), _values(kind.value_type), max_size=SOME)
        case inspect.UnionType():
            return st.one_of([_values(each) for each in kind.types])
        case inspect.StructType():
            return instances(kind.cls)
    raise NotImplementedError(kind)


def at_least(least: float, *, below: float = math.inf) -> st.SearchStrategy[float]:
    """Finite numbers from a bound on, to another that is left out."""
    return st.floats(min_value=least, max_value=None if below == math.inf else below, exclude_max=below != math.inf, allow_infinity=False)


POSITIVE = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
"""Durations."""
