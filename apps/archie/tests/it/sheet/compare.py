"""Compares two workbooks as packages, with nothing but Python's own modules.

compare.py OLD NEW prints JSON: the cells that differ as they are written, and the parts that differ otherwise.
"""
import json, re, sys, zipfile
from xml.etree import ElementTree

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
PACKAGE = "{http://schemas.openxmlformats.org/package/2006/relationships}"


def parts(path):
    with zipfile.ZipFile(path) as package:
        assert package.testzip() is None
        return {name: package.read(name) for name in package.namelist()}


def sheets(found):
    relations = {r.get("Id"): r.get("Target") for r in ElementTree.fromstring(found["xl/_rels/workbook.xml.rels"]).iter(f"{PACKAGE}Relationship")}
    book = ElementTree.fromstring(found["xl/workbook.xml"])
    names = {}
    for sheet in book.iter(f"{MAIN}sheet"):
        target = relations[sheet.get(f"{REL}id")]
        names[sheet.get("name")] = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    return names


def cells(text):
    """Each cell as it is written, and the rest of the sheet with holes where they were."""
    text = text.decode()
    found = {}

    def take(match):
        found[re.search(r'r="([A-Z]+\d+)"', match[0])[1]] = match[0]
        return ""

    rest = re.sub(r"<c [^>]*?/>|<c .*?</c>", take, text, flags=re.S)
    rest = re.sub(r"<row [^>]*?/>|<row [^>]*>\s*</row>", "", rest)
    rest = re.sub(r"<dimension [^>]*>", "", rest)
    return found, rest


old, new = parts(sys.argv[1]), parts(sys.argv[2])
before, after = sheets(old), sheets(new)
differing, others = [], []
for name, part in after.items():
    was, rest_was = cells(old[before[name]]) if name in before else ({}, None)
    now, rest_now = cells(new[part])
    if rest_was is not None and rest_was != rest_now:
        others.append(part)
    differing += [f"{name}!{at}" for at in sorted(was.keys() | now.keys()) if was.get(at) != now.get(at)]
for name in old.keys() | new.keys():
    if name not in after.values() and old.get(name) != new.get(name):
        others.append(name)
# Every part must be well-formed, and every part that is named must be there.
for name, text in new.items():
    if name.endswith((".xml", ".rels")):
        ElementTree.fromstring(text)
types = ElementTree.fromstring(new["[Content_Types].xml"])
for override in types:
    part = override.get("PartName")
    assert part is None or part.lstrip("/") in new, part
styles = ElementTree.fromstring(new["xl/styles.xml"])
count = len(styles.find(f"{MAIN}cellXfs"))
for part in after.values():
    for cell in ElementTree.fromstring(new[part]).iter(f"{MAIN}c"):
        assert int(cell.get("s", 0)) < count, cell.get("r")
print(json.dumps({"cells": differing, "parts": sorted(others), "gone": sorted(before.keys() - after.keys())}))
