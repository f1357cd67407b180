"""The rules of the Agent Trajectory Interchange Format, to hold documents against.

The schema in `data/atif-1.7.schema.json` is written after RFC 0001 of the Harbor framework. Where
the package `harbor` can be imported, its own models judge, too.
"""

import importlib.util
import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMA = json.loads((Path(__file__).parents[2] / "data" / "atif-1.7.schema.json").read_text())
HAS_HARBOR = importlib.util.find_spec("harbor") is not None


def check_trajectory(document: dict[str, Any]) -> None:
    """Hold a document, and those embedded in it, against the format."""
    Draft202012Validator(SCHEMA).validate(document)
    _check_references(document)
    if HAS_HARBOR:
        check_by_harbor(document)


def _check_references(document: dict[str, Any]) -> None:
    inner = document.get("subagent_trajectories", [])
    names = [each["trajectory_id"] for each in inner]
    assert len(set(names)) == len(names)
    steps = document["steps"]
    assert [each["step_id"] for each in steps] == [*range(1, len(steps) + 1)]
    for step in steps:
        calls = {each["tool_call_id"] for each in step.get("tool_calls", [])}
        assert len(calls) == len(step.get("tool_calls", []))
        for result in step.get("observation", {}).get("results", []):
            assert result["source_call_id"] in calls
            for reference in result.get("subagent_trajectory_ref", []):
                assert reference["trajectory_id"] in names
    for each in inner:
        _check_references(each)


def check_by_harbor(document: dict[str, Any]) -> None:
    """Hold a document against the models of the package `harbor`."""
    from harbor.utils.trajectory_validator import TrajectoryValidator

    validator = TrajectoryValidator()
    assert validator.validate(document), validator.get_errors()
