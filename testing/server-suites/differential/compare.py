"""Where two answers differ."""

from __future__ import annotations

from typing import Any

MISSING = "(missing)"


def short(value: Any) -> str:
    import json

    text = value if value is MISSING else json.dumps(value, sort_keys=True)
    return text if len(text) <= 200 else text[:200] + "…"


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Returns the places at which two values differ, as lines."""
    if ours == theirs:
        return []
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found = []
        for key in sorted(ours.keys() | theirs.keys()):
            found += differences(ours.get(key, MISSING), theirs.get(key, MISSING), f"{path}.{key}")
        return found
    if isinstance(ours, list) and isinstance(theirs, list):
        found = []
        for index in range(max(len(ours), len(theirs))):
            left = ours[index] if index < len(ours) else MISSING
            right = theirs[index] if index < len(theirs) else MISSING
            found += differences(left, right, f"{path}[{index}]")
        return found
    return [f"{path}: ours {short(ours)}, reference {short(theirs)}"]
