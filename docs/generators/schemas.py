"""Write docs/reference/schemas/*.json: JSON Schemas of what ecgquorum writes, from the classes that it writes.

Run by `make docs`. Every field of a class is in its schema with the text of the class's docstring, and no other.
"""

import dataclasses
import inspect
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from docstrings import described_names
from pydantic import TypeAdapter

from ecgquorum.ensemble.result import CERTAIN, DEFERRED, SKIPPED, UNREADABLE, Result, WindowResult
from ecgquorum.evaluation.comparisons import Comparison
from ecgquorum.evaluation.conditions import Condition
from ecgquorum.evaluation.metric_rows import EnsembleFacts, MetricRow, pack_row
from ecgquorum.evaluation.scorecard import FORMAT, DataFacts
from ecgquorum.preprocessing.measurements import Measurements
from ecgquorum.preprocessing.quality import Finding, Severity
from ecgquorum.recordings.acquisition import Acquisition
from ecgquorum.triage.worklist import Summary

FOLDER = Path(__file__).parent.parent / "reference" / "schemas"

TEXT, NUMBER, COUNT = {"type": "string"}, {"type": "number"}, {"type": "integer", "minimum": 0}


def class_schema(cls: type, **replaced: dict[str, Any]) -> dict[str, Any]:
    """The schema of a dataclass: every field required, none unknown; `replaced` fields have another schema."""
    properties = {}
    for field in dataclasses.fields(cls):
        schema = replaced.get(field.name) or TypeAdapter(field.type, config=None).json_schema()
        properties[field.name] = {"description": text, **schema} if (text := describe(cls, field.name)) else schema
    return closed_object(properties, title=cls.__name__)


def closed_object(properties: dict[str, Any], **others: Any) -> dict[str, Any]:
    """An object with exactly these properties."""
    return {
        "type": "object",
        **others,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def describe(cls: type, name: str) -> str:
    """What the class's docstring says about a field."""
    for names, text in described_names(inspect.cleandoc(cls.__doc__ or "")):
        if names and name in names.split(", "):
            return text
    return ""


def array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def result_schema() -> dict[str, Any]:
    """What `Result.to_json` returns."""
    severity = {"enum": [str(one) for one in Severity]}
    schema = class_schema(
        Result,
        quality={"description": "the worst severity of the findings", **severity},
        windows=array(class_schema(WindowResult)),
        acquisition=class_schema(Acquisition),
        measurements=class_schema(Measurements),
        decision={"enum": ["", CERTAIN, DEFERRED, UNREADABLE, SKIPPED]},
    )
    schema["properties"]["findings"] = array(class_schema(Finding, severity=severity))
    schema["required"].append("findings")
    return schema


def worklist_schema() -> dict[str, Any]:
    """One line of `worklist.jsonl`: a result with a decision."""
    schema = result_schema()
    schema["properties"]["decision"]["enum"].remove("")
    return schema


def summary_schema() -> dict[str, Any]:
    """What `triage --json` prints."""
    given = Summary(dict.fromkeys((CERTAIN, DEFERRED, UNREADABLE, SKIPPED), 0), 0, (), 0)
    counts = {name: array(TEXT) if name == "missing" else COUNT for name in given.to_json()}
    return closed_object({**counts, "out": TEXT, "exit_code": COUNT})


def scorecard_schema() -> dict[str, Any]:
    """A scorecard, NAME.json."""
    row = class_schema(MetricRow)
    empty = MetricRow("", "", 0, "", "", 0.0, "", "", None, None, None, "", 0, "", "")
    filled = MetricRow("e", "s", 0, "a", "t", 0.0, "m", "d", None, None, None, "r", 0, "m", "d")
    row["properties"] = {name: row["properties"][name] for name in pack_row(filled)}
    row["required"] = [*pack_row(empty), "ensemble", "attack", "metric"]
    facts = class_schema(EnsembleFacts)
    facts["required"] = [  # scorecards of earlier versions lack what has a default
        field.name for field in dataclasses.fields(EnsembleFacts) if field.default is dataclasses.MISSING
    ]
    example = closed_object(
        {"position": COUNT, "id": TEXT, "lead": TEXT, "rate_hz": NUMBER, "ensembles": {"type": "object"}}
    )
    return closed_object(
        {
            "format": {"const": FORMAT},
            "data": class_schema(DataFacts),
            "ensembles": array(facts),
            "conditions": array(class_schema(Condition)),
            "examples": array(example),
            "evaluation": {"type": "object", "description": "settings, including every default"},
            "versions": {"type": "object", "additionalProperties": TEXT},
            "predictions": closed_object({"file": TEXT, "sha256": TEXT}),
            "comparisons": array(class_schema(Comparison)),
            "rows": array(row),
            "sha256": {**TEXT, "description": "of the document without this field"},
        }
    )


SCHEMAS = {
    "result": (result_schema, "Result of one recording: `predict --json`, `Result.to_json()`"),
    "worklist": (worklist_schema, "One line of worklist.jsonl"),
    "triage-summary": (summary_schema, "What `triage --json` prints"),
    "scorecard": (scorecard_schema, "Scorecard, NAME.json"),
}


def make_schemas() -> dict[str, dict[str, Any]]:
    """Every schema by its name."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {name: {**head, **make(), "title": title} for name, (make, title) in SCHEMAS.items()}


if __name__ == "__main__":
    for name, schema in make_schemas().items():
        (FOLDER / f"{name}.schema.json").write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n")
