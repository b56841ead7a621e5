"""Prints what openpyxl sees of a workbook besides the contents of cells, as JSON: python looks.py BOOK"""
import json, sys, zipfile
import openpyxl

book = openpyxl.load_workbook(sys.argv[1])
seen = {"parts": sorted(zipfile.ZipFile(sys.argv[1]).namelist()), "sheets": {}}
for sheet in book.worksheets:
    charts = []
    for chart in sheet._charts:
        title = "".join(run.t for line in chart.title.tx.rich.p for run in line.r or []) if chart.title else ""
        data = [series.val.numRef.f for series in chart.series]
        at = chart.anchor._from
        charts.append({"kind": type(chart).__name__, "title": title, "data": data, "at": [at.col, at.row]})
    rules = []
    for area in sheet.conditional_formatting:
        for rule in area.rules:
            fill = rule.dxf.fill.bgColor.rgb if rule.dxf and rule.dxf.fill else None
            rules.append({"area": str(area.sqref), "type": rule.type, "formula": rule.formula, "fill": fill})
    cells = {}
    for row in sheet.iter_rows():
        for cell in row:
            look = {"bold": cell.font.b, "color": cell.font.color.rgb if cell.font.color else None, "fill": cell.fill.fgColor.rgb if cell.fill.patternType else None,
                    "left": cell.border.left.style if cell.border.left else None, "horizontal": cell.alignment.horizontal,
                    "format": cell.number_format, "value": str(cell.value) if cell.value is not None else None}
            cells[cell.coordinate] = look
    widths = {name: column.width for name, column in sheet.column_dimensions.items() if column.customWidth}
    seen["sheets"][sheet.title] = {"charts": charts, "rules": rules, "cells": cells, "widths": widths}
print(json.dumps(seen))
