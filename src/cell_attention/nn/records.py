"""Configurations as JSON records, which stay what they were when fields are added later."""

import json
from dataclasses import asdict, field, fields
from typing import Any

UNSET: Any = object()


def later(before: Any, default: Any = UNSET) -> Any:
    """Declare a field that came later: records without it mean the value `before`."""
    return field(default=before if default is UNSET else default, metadata={"before": before})


def completed(cls: type[Any], record: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a JSON record with those of the fields that came later."""
    missing = {
        entry.name: entry.metadata["before"] for entry in fields(cls) if "before" in entry.metadata
    }
    return {**missing, **tuples(record)}


def record_of(config: Any) -> dict[str, Any]:
    """Return a configuration as JSON. Fields that came later are left out where they have the value
    from before: a configuration keeps its record, and thereby its digest.
    """
    record: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    for entry in fields(config):
        if "before" in entry.metadata and entry.metadata["before"] == getattr(config, entry.name):
            del record[entry.name]
    return record


def tuples(record: dict[str, Any]) -> dict[str, Any]:
    """Replace lists by tuples, which the fields of a configuration need."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
