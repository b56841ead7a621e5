"""Runs the scripts against our server and compares its answers with the reference's.

    differential.py compare --ours URL [--reference URL] [--only NAME] [--json] [--details N] [--expect N]
    differential.py record --reference URL [--only NAME]
    differential.py check

`compare` takes the recorded answers unless it gets a reference. `record` runs every script twice and keeps the answers of
those that answered the same twice; any other fails. `check` needs no server: it alters recorded answers, one event at a time,
and fails if a comparison does not see it.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

import recorded
import scripts_calls  # noqa: F401 registers its scripts
import scripts_protocol  # noqa: F401
import scripts_streams  # noqa: F401
import scripts_streams_people  # noqa: F401
from api import SCRIPTS, Api, Script, Variant
from compare import differences
from differences import DIFFERENCES, apply
from normalise import normalise

WORKERS = 6
SCRIPTS_MIN = 40


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["compare", "record", "check"])
    parser.add_argument("--ours", default="", metavar="URL", help="address of our server, with the graphs `lab`")
    parser.add_argument("--reference", default="", metavar="URL", help="address of the reference, with `graphs.py`")
    parser.add_argument("--only", default="", metavar="NAME", help="only scripts whose names contain this")
    parser.add_argument("--json", action="store_true", help="print the results as JSON on the last line")
    parser.add_argument("--details", type=int, default=3, help="how many places to print of each variant that differs")
    parser.add_argument("--expect", type=int, help="how many variants must be equal (default: all)")
    args = parser.parse_args()
    scripts = [script for script in SCRIPTS if args.only in script.name]
    if args.command == "check":
        return check(scripts)
    if args.command == "record":
        return record(scripts, args.reference)
    reference = Live(args.reference) if args.reference else Recorded()
    return compare(scripts, Live(args.ours), reference, args)


class Live:
    """A server that runs."""

    def __init__(self, url: str):
        self.url = url
        # The ids of default assistants follow from the names of their graphs, so they are the same on every server.
        search = {"limit": 100, "metadata": {"created_by": "system"}}
        found = httpx.post(f"{url}/assistants/search", json=search, trust_env=False, timeout=30)
        self.kept = {assistant["assistant_id"] for assistant in found.raise_for_status().json()}

    def answers(self, variant: Variant) -> list[dict[str, Any]]:
        api = Api(self.url, variant)
        try:
            variant.script.body(api)
        except (KeyError, IndexError, LookupError, TypeError, httpx.HTTPError) as error:
            # The script could not continue with what it was answered: that is an answer, too.
            api.recorder.calls.append({"call": "the script could not continue", "error": type(error).__name__})
        finally:
            api.recorder.close()
        return normalise(api.recorder.calls, self.kept)


class Recorded:
    """The reference's answers, from files."""

    def __init__(self):
        self.read: dict[str, dict[str, Any]] = {}

    def answers(self, variant: Variant) -> list[dict[str, Any]]:
        name = variant.script.name
        if name not in self.read:
            self.read[name] = recorded.read(name)
        return copy.deepcopy(self.read[name][variant.key])


def all_variants(scripts: list[Script]) -> list[Variant]:
    return [variant for script in scripts for variant in script.variants()]


def compare(scripts: list[Script], ours: Live, reference, args) -> int:
    variants = all_variants(scripts)

    def compared(variant: Variant) -> list[str]:
        return differing(variant, ours.answers(variant), reference.answers(variant))

    with ThreadPoolExecutor(WORKERS) as pool:
        found = list(pool.map(compared, variants))
    equal = Counter[str]()
    for variant, places in zip(variants, found, strict=True):
        name = f"{variant.script.name} ({variant.key})"
        equal[variant.script.name] += not places
        if places:
            print(f"differs: {name}: {len(places)} places", file=sys.stderr)
            for place in places[: args.details]:
                print(f"    {place}", file=sys.stderr)
    total = sum(equal.values())
    print(f"{len(scripts)} scripts, {len(variants)} comparisons, {total} equal", file=sys.stderr)
    if args.json:
        results = {"scripts": len(scripts), "of": len(variants), "equal": total, "differences": len(DIFFERENCES)}
        print(json.dumps(results))
    expected = len(variants) if args.expect is None else args.expect
    return 0 if variants and total >= expected else 1


def differing(variant: Variant, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> list[str]:
    """Returns where the answers differ, apart from the differences on purpose. Changes them."""
    return differences(*apply(variant.script.name, ours, theirs))


def record(scripts: list[Script], url: str) -> int:
    server = Live(url)
    failed = 0
    for script in scripts:
        variants = script.variants()
        with ThreadPoolExecutor(WORKERS) as pool:
            first = list(pool.map(server.answers, variants))
            second = list(pool.map(server.answers, variants))
        kept = {}
        for variant, one, other in zip(variants, first, second, strict=True):
            # Without what differs on purpose, such as the ids of events and the texts of errors.
            kept[variant.key], again = apply(script.name, one, other)
            places = differences(kept[variant.key], again)
            if places:
                failed += 1
                print(f"the reference differs from itself: {script.name} ({variant.key}): {places[:3]}", file=sys.stderr)
        recorded.write(script.name, kept)
        print(f"recorded {script.name}: {len(variants)}", file=sys.stderr)
    info = httpx.get(f"{url}/info", trust_env=False, timeout=30).json()
    recorded.write_versions({"langgraph-api": info["version"], "langgraph": info["langgraph_py_version"]})
    return 1 if failed else 0


def check(scripts: list[Script]) -> int:
    """Alters each recorded variant in one place, and expects a difference there; and none without."""
    reference = Recorded()
    missed = 0
    variants = all_variants(scripts)
    for variant in variants:
        answers = reference.answers(variant)
        if differing(variant, copy.deepcopy(answers), copy.deepcopy(answers)):
            missed += 1
            print(f"differs from itself: {variant.script.name} ({variant.key})", file=sys.stderr)
        for alter in (drop_last_event, change_a_value, change_a_status):
            altered = copy.deepcopy(answers)
            if alter(altered) and not differing(variant, altered, copy.deepcopy(answers)):
                missed += 1
                print(f"not seen: {alter.__name__} in {variant.script.name} ({variant.key})", file=sys.stderr)
    names = {script.name for script in scripts}
    streams = sum(script.streams for script in scripts)
    print(f"{len(names)} scripts, {streams} of them in all modes, {len(variants)} variants: {missed} not seen", file=sys.stderr)
    is_complete = len(names) == len(scripts) and (streams >= SCRIPTS_MIN or len(scripts) < len(SCRIPTS))
    return 0 if missed == 0 and variants and is_complete else 1


def drop_last_event(calls: list[dict[str, Any]]) -> bool:
    for call in reversed(calls):
        if call.get("events"):
            call["events"].pop()
            return True
    return False


def change_a_value(calls: list[dict[str, Any]]) -> bool:
    for call in reversed(calls):
        if call.get("status") == 200 and isinstance(call.get("body"), dict) and call["body"]:
            call["body"][sorted(call["body"])[0]] = "altered"
            return True
    return False


def change_a_status(calls: list[dict[str, Any]]) -> bool:
    call = next((call for call in reversed(calls) if "status" in call), None)
    if call is not None:
        call["status"] = 418
    return call is not None


if __name__ == "__main__":
    sys.exit(main())
