"""The reference's answers in files, so that a comparison needs no reference.

A file holds the variants of one script. Values that occur more than once are written once: `{"$": 3}` is the value number 3 of
the list `shared`. Most events of a script occur in several of its variants.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "recorded"
VERSIONS = "versions.json"
# A shorter value takes less space than a reference to it.
SHARED_MIN = 40


def dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


class Sharing:
    """Replaces what occurs more than once by references."""

    def __init__(self, value: Any):
        self.counts: Counter[str] = Counter()
        self.numbers: dict[str, int] = {}
        self.shared: list[Any] = []
        self.count(value)

    def count(self, value: Any) -> None:
        if not isinstance(value, dict | list):
            return
        text = dumps(value)
        self.counts[text] += 1
        # What is inside of a value that is shared occurs once, whatever the number of references.
        if self.counts[text] == 1 or len(text) < SHARED_MIN:
            for inner in value.values() if isinstance(value, dict) else value:
                self.count(inner)

    def share(self, value: Any) -> Any:
        if not isinstance(value, dict | list):
            return value
        text = dumps(value)
        if self.counts[text] < 2 or len(text) < SHARED_MIN:
            return self.inside(value)
        if text not in self.numbers:
            inside = self.inside(value)
            self.numbers[text] = len(self.shared)
            self.shared.append(inside)
        return {"$": self.numbers[text]}

    def inside(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.share(inner) for key, inner in value.items()}
        return [self.share(inner) for inner in value]


def restore(value: Any, shared: list[Any]) -> Any:
    if isinstance(value, list):
        return [restore(inner, shared) for inner in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"$"}:
        return shared[value["$"]]
    return {key: restore(inner, shared) for key, inner in value.items()}


def write(script: str, variants: dict[str, Any]) -> None:
    sharing = Sharing(variants)
    inside = sharing.inside(variants)
    FOLDER.mkdir(exist_ok=True)
    lines = [f'"shared":{dumps(sharing.shared)}', *(f"{dumps(key)}:{dumps(inside[key])}" for key in sorted(inside))]
    (FOLDER / f"{script}.json").write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


def read(script: str) -> dict[str, Any]:
    """Returns the answers of a script by variant; fails if they were never recorded."""
    written = json.loads((FOLDER / f"{script}.json").read_text(encoding="utf-8"))
    shared: list[Any] = []
    for value in written.pop("shared"):
        shared.append(restore(value, shared))
    return restore(written, shared)


def write_versions(versions: dict[str, str]) -> None:
    (FOLDER / VERSIONS).write_text(json.dumps(versions, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def versions() -> dict[str, str]:
    return json.loads((FOLDER / VERSIONS).read_text(encoding="utf-8"))
