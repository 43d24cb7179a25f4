"""Configurations as JSON records, which stay what they were when fields are added later."""

import json
from dataclasses import asdict, field, fields
from typing import Any

UNSET: Any = object()


def later(before: Any, default: Any = UNSET, design: str = "") -> Any:
    """Declare a field that came later: records without it mean the value `before`.

    design: the only design that reads this field; records of other designs do not have it, and
    mean its default.
    """
    usual = before if default is UNSET else default
    return field(default=usual, metadata={"before": before, "design": design})


def completed(cls: type[Any], record: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a JSON record with those of the fields that came later."""
    known = {entry.name: entry for entry in fields(cls) if "before" in entry.metadata}
    missing = {name: entry.metadata["before"] for name, entry in known.items()}
    design = record.get("design", missing.get("design"))
    unread = {name for name, entry in known.items() if entry.metadata["design"] not in ("", design)}
    missing |= {name: known[name].default for name in unread}
    return {**missing, **tuples(record)}


def record_of(config: Any) -> dict[str, Any]:
    """Return a configuration as JSON. Fields that came later are left out where a record without
    them means the same: a configuration keeps its record, and thereby its digest.
    """
    record: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    design = getattr(config, "design", None)
    for entry in fields(config):
        if "before" in entry.metadata:
            unread = entry.metadata["design"] not in ("", design)
            implied = entry.default if unread else entry.metadata["before"]
            if implied == getattr(config, entry.name):
                del record[entry.name]
    return record


def tuples(record: dict[str, Any]) -> dict[str, Any]:
    """Replace lists by tuples, which the fields of a configuration need."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
