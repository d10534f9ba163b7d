"""What is wrong with a configuration, as one sentence that names the key.

try:
    RunConfig.model_validate(values)
except ValidationError as error:
    raise ConfigError(first_fault(error, "", RunConfig.model_fields)) from error
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from rsd.errors import ConfigError, hint

UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


def first_fault(error: ValidationError, prefix: str, known: Mapping[str, Any]) -> str:
    """The first fault of `error`, as a sentence; `prefix` stands before the keys, `known` are the fields there are."""
    faults = error.errors(include_url=False)
    # an unknown key is often the reason why a known one is missing
    fault = next((f for f in faults if f["type"] in UNKNOWN), faults[0])
    names = _key(fault, known)
    key = prefix + ".".join(names)
    if fault["type"] in UNKNOWN:
        siblings = _keys_beside(known, names[:-1])
        parent = (prefix + ".".join(names[:-1])).rstrip(".")
        takes = f"{parent} takes {', '.join(siblings) or 'none'}." if parent else "--help lists the keys."
        return f"There is no key {key}; {hint(names[-1], siblings, takes)}"
    if fault["type"] == "missing":
        return f"{key} is not set; give it a value."
    if fault["input"] is None:
        return f"{key} is not set (null); give it a value."
    of_members = [f["msg"] for f in faults if _key(f, known) == names]  # of a union, what each of its members asks for
    reasons = [re.sub(r"^(Input|String|Tuple|Value error,) ", "", message) for message in of_members]
    if len(reasons) > 1:
        reasons = list(dict.fromkeys(reason.partition(", unable")[0] for reason in reasons))
        reasons[1:] = [reason.removeprefix("should be ") for reason in reasons[1:]]
    return f"{key}={fault['input']!r} is wrong: it {' or '.join(reasons)}."


def no_flag_is_a_number(values: Mapping[str, Any], checked: Any, prefix: str) -> None:
    """Raise ConfigError where one of `values` is true or false and `checked` holds a number: Python takes them for 1
    and 0."""
    for name, value in values.items():
        held = getattr(checked, name, value)
        if isinstance(value, Mapping):
            no_flag_is_a_number(value, held, f"{prefix}{name}.")
        elif isinstance(value, bool) and not isinstance(held, bool):
            raise ConfigError(f"{prefix}{name}={value} is wrong: it should be a number.")


def _key(fault: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    """The names that lead to a fault's value, without the member of a union that pydantic also names."""
    names: list[str] = []
    for part in map(str, fault["loc"]):
        if fault["type"] in UNKNOWN or part in _keys_beside(known, names):
            names.append(part)
    return names


def _keys_beside(known: Mapping[str, Any], path: Sequence[str]) -> list[str]:
    for name in path:
        annotation = _type_of(known.get(name))
        candidates = [annotation, *getattr(annotation, "__args__", ())]
        inner = next((c for c in candidates if inspect.isclass(c) and hasattr(c, "__annotations__")), None)
        known = getattr(inner, "model_fields", None) or getattr(inner, "__dataclass_fields__", {})
    return [name for name in known if not name.startswith("_")]


def _type_of(field: Any) -> Any:
    """The type of a field of a section, of a dataclass or of what `build` makes an object from."""
    if isinstance(field, tuple):
        return field[0]
    return getattr(field, "annotation", None) or getattr(field, "type", None)
