"""Makes the workbooks of the tests, and says what must come out of each: computed from the rows themselves, not from the workbooks.

make.py FOLDER writes NAME.xlsx and cases.json.
"""
import datetime, io, json, random, re, sys, zipfile

import openpyxl
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.formatting.rule import ColorScaleRule
from openpyxl.styles import Font, PatternFill
from openpyxl.utils.datetime import CALENDAR_MAC_1904
from openpyxl.worksheet.datavalidation import DataValidation

FOLDER = sys.argv[1]
ROWS = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
CASES = []


def case(name, code, expected, instruction=None):
    CASES.append({"name": name, "instruction": instruction or f"Do {name}", "code": code, "expected": expected})


def save(book, name):
    book.save(f"{FOLDER}/{name}.xlsx")


def rewrite(name, part, change):
    """Changes a part of a workbook as text."""
    path = f"{FOLDER}/{name}.xlsx"
    with zipfile.ZipFile(path) as old:
        parts = {info.filename: old.read(info) for info in old.infolist()}
    parts[part] = change(parts[part].decode()).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for key, text in parts.items():
            new.writestr(key, text)


def german(number):
    return f"{number:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")


# 1. Headers with spaces around them.
rows = [("Tea", 3), ("Coffee", 5), ("Tea", 2), ("Milk", 1), ("Water", 9), ("Coffee", 4)]
book = openpyxl.Workbook()
ws = book.active
ws.title = "Sales"
ws.append(["Product ", "  Amount"])
for row in rows:
    ws.append(row)
save(book, "spaces")
names = sorted({product for product, _ in rows})
case("spaces", """
t = table("Sales").groupby("Product")["Amount"].sum().sort_index()
ws = workbook.create_sheet("Sums")
ws.append(["Product", "Amount"])
for name, amount in t.items():
    ws.append([name, int(amount)])
""", {f"Sums!A{i + 2}": name for i, name in enumerate(names)} | {
    f"Sums!B{i + 2}": sum(a for p, a in rows if p == name) for i, name in enumerate(names)})

# 2. A title, and a header of two rows with merged cells.
book = openpyxl.Workbook()
ws = book.active
ws.title = "Plan"
ws["A1"] = "Sales of 2024"
ws.merge_cells("A1:E1")
ws.append([])
ws.append(["Region", "Q1", None, "Q2", None])
ws.append([None, "Plan", "Actual", "Plan", "Actual"])
ws.merge_cells("A3:A4"), ws.merge_cells("B3:C3"), ws.merge_cells("D3:E3")
plan = [("North", 10, 12, 20, 18), ("South", 5, 4, 6, 7), ("West", 1, 2, 3, 4)]
for row in plan:
    ws.append(row)
save(book, "merged")
case("merged", """
t = table("Plan")
ws = workbook.create_sheet("Over")
for quarter in ("Q1", "Q2"):
    ws.append([quarter, int((t[f"{quarter} / Actual"] - t[f"{quarter} / Plan"]).sum())])
""", {"Over!A1": "Q1", "Over!B1": sum(r[2] - r[1] for r in plan), "Over!A2": "Q2", "Over!B2": sum(r[4] - r[3] for r in plan)})

# 3. German figures and dates, as text.
random.seed(3)
posts = [(f"R{i:03}", datetime.date(2024, 1 + i % 3, 1 + i % 28), round(random.uniform(-500, 9000), 2)) for i in range(60)]
book = openpyxl.Workbook()
ws = book.active
ws.title = "Belege"
ws.append(["Beleg", "Datum", "Betrag", "Konto"])
for number, date, amount in posts:
    ws.append([number, date.strftime("%d.%m.%Y"), german(abs(amount)) + ("-" if amount < 0 else ""), "00123"])
save(book, "german")
case("german", """
t = table("Belege")
ws = workbook.create_sheet("Monate")
for month, part in t.groupby(t["Datum"].dt.month):
    ws.append([int(month), round(float(part["Betrag"].sum()), 2), len(part)])
ws["E1"] = t["Konto"].iloc[0]
""", {f"Monate!{c}{m}": v for m in (1, 2, 3) for c, v in zip("ABC", (
    m, round(sum(a for _, d, a in posts if d.month == m), 2), sum(1 for _, d, _ in posts if d.month == m)))} | {"Monate!E1": "00123"})

# 4. Many rows.
random.seed(4)
regions = ["North", "South", "East", "West"]
large = [(i, regions[random.randrange(4)], random.randrange(1, 100), round(random.uniform(1, 50), 2)) for i in range(ROWS)]
book = openpyxl.Workbook(write_only=True)
ws = book.create_sheet("Orders")
ws.append(["Id", "Region", "Count", "Price"])
for row in large:
    ws.append(row)
save(book, "large")
case("large", """
t = table("Orders")
ws = workbook.create_sheet("Regions")
for name, part in t.groupby("Region"):
    ws.append([name, len(part), int(part["Count"].sum())])
""", {f"Regions!{c}{i + 1}": v for i, name in enumerate(sorted(regions)) for c, v in zip("ABC", (
    name, sum(1 for r in large if r[1] == name), sum(r[2] for r in large if r[1] == name)))})

# 5. Formulas, some of them shared, with what they had come to.
book = openpyxl.Workbook()
ws = book.active
ws.title = "Calc"
ws.append(["Item", "Net", "Tax", "Gross"])
net = [100, 250, 40, 1000]
for i, n in enumerate(net):
    ws.append([f"I{i}", n, f"=B{i + 2}*0.19", f"=B{i + 2}+C{i + 2}"])
ws["A6"], ws["D6"] = "Total", "=SUM(D2:D5)"
save(book, "formulas")


def shared(text):
    for i, n in enumerate(net):
        row = i + 2
        f = f'<f t="shared" ref="C2:C5" si="0">B2*0.19</f>' if i == 0 else '<f t="shared" si="0"/>'
        text = re.sub(rf'(<c r="C{row}"[^>]*>)<f>.*?</f><v ?/?>(</v>)?', lambda m: f"{m[1]}{f}<v>{n * 0.19}</v>", text)
        text = re.sub(rf'(<c r="D{row}"[^>]*>)(<f>.*?</f>)<v ?/?>(</v>)?', lambda m: f"{m[1]}{m[2]}<v>{n * 1.19}</v>", text)
    return re.sub(r'(<c r="D6"[^>]*>)(<f>.*?</f>)<v ?/?>(</v>)?', lambda m: f"{m[1]}{m[2]}<v>{sum(net) * 1.19}</v>", text)


rewrite("formulas", "xl/worksheets/sheet1.xml", shared)
case("formulas", """
t = table("Calc")
items = t[t["Item"] != "Total"]
ws = workbook["Calc"]
ws["F1"] = "Tax in all"
ws["F2"] = round(float(items["Tax"].sum()), 2)
ws["F3"] = formula("=SUM(C2:C5)")
ws["C2"] = 20
""", {"Calc!F1": "Tax in all", "Calc!F2": round(sum(net) * 0.19, 2), "Calc!F3": "=SUM(C2:C5)", "Calc!C2": 20, "Calc!C4": "=B4*0.19", "Calc!D2": "=B2+C2"})

# 6. A chart, a picture, a comment, colours.
book = openpyxl.Workbook()
ws = book.active
ws.title = "Data"
for row in [("Month", "Sales"), ("Jan", 10), ("Feb", 20), ("Mar", 15)]:
    ws.append(row)
chart = BarChart()
chart.add_data(Reference(ws, min_col=2, min_row=1, max_row=4), titles_from_data=True)
ws.add_chart(chart, "D2")
ws["A1"].comment = Comment("the months", "somebody")
ws.conditional_formatting.add("B2:B4", ColorScaleRule(start_type="min", start_color="FF0000", end_type="max", end_color="00FF00"))
from PIL import Image as Picture
from openpyxl.drawing.image import Image
picture = io.BytesIO()
Picture.new("RGB", (8, 8), "red").save(picture, "PNG")
ws.add_image(Image(picture), "H2")
save(book, "chart")
case("chart", """
ws = workbook["Data"]
ws["B5"] = formula("=SUM(B2:B4)")
ws["A5"] = "All"
plt.bar(["Jan"], [10])
plt.savefig("sales.png")
""", {"Data!A5": "All", "Data!B5": "=SUM(B2:B4)"})

# 7. Several sheets that belong together.
book = openpyxl.Workbook()
ws = book.active
ws.title = "Orders"
ws.append(["Article", "Pieces"])
orders = [("a1", 3), ("b2", 4), ("a1", 1), ("zz", 7)]
for row in orders:
    ws.append(row)
prices = {"a1": 2.5, "b2": 10}
ws = book.create_sheet("Prices")
ws.append(["Article", "Price"])
for row in prices.items():
    ws.append(row)
book.create_sheet("Empty")
save(book, "several")
case("several", """
orders, prices = table("Orders"), table("Prices").set_index("Article")["Price"]
ws = workbook["Orders"]
ws["C1"] = "Value"
for row, order in orders.iterrows():
    if order["Article"] in prices:
        ws.cell(row, 3).value = float(order["Pieces"] * prices[order["Article"]])
    else:
        ws.cell(row, 3).value = "no price"
""", {"Orders!C1": "Value"} | {f"Orders!C{i + 2}": n * prices[a] if a in prices else "no price" for i, (a, n) in enumerate(orders)})

# 8. Dates that count from 1904, with times.
book = openpyxl.Workbook()
book.epoch = CALENDAR_MAC_1904
ws = book.active
ws.title = "Log"
ws.append(["When", "What"])
moments = [datetime.datetime(2024, 2, 29, 12, 30), datetime.datetime(2023, 12, 31), datetime.datetime(2024, 7, 1, 6, 0)]
for i, moment in enumerate(moments):
    ws.append([moment, f"e{i}"])
save(book, "dates")
case("dates", """
t = table("Log")
ws = workbook.create_sheet("Span")
ws["A1"] = t["When"].min().to_pydatetime()
ws["A2"] = t["When"].max().to_pydatetime()
ws["B1"] = int((t["When"].max() - t["When"].min()).days)
""", {"Span!A1": str(min(moments)).removesuffix(" 00:00:00"), "Span!A2": str(max(moments)), "Span!B1": (max(moments) - min(moments)).days})

# 9. Styles, names, a validation, frozen and hidden things; cells in the middle are filled in.
book = openpyxl.Workbook()
ws = book.active
ws.title = "Stock"
ws.append(["Part", "Have", "Need", "Missing"])
stock = [("bolt", 5, 9), ("nut", 12, 10), ("pin", 0, 3)]
for row in stock:
    ws.append(row)
for cell in ws[1]:
    cell.font, cell.fill = Font(bold=True, color="FFFFFF"), PatternFill("solid", fgColor="336699")
for row in range(2, 5):
    ws.cell(row, 4).number_format = "#,##0.00"
    ws.cell(row, 4).fill = PatternFill("solid", fgColor="FFFF00")
ws.freeze_panes = "A2"
ws.row_dimensions[4].hidden = True
ws.column_dimensions["A"].width = 30
validation = DataValidation(type="whole", operator="greaterThan", formula1="0")
ws.add_data_validation(validation)
validation.add("B2:B4")
book.defined_names["Parts"] = openpyxl.workbook.defined_name.DefinedName("Parts", attr_text="Stock!$A$2:$A$4")
save(book, "styles")
case("styles", """
ws = workbook["Stock"]
for row, part in table("Stock").iterrows():
    ws.cell(row, 4).value = max(0, int(part["Need"]) - int(part["Have"]))
""", {f"Stock!D{i + 2}": max(0, n - h) for i, (_, h, n) in enumerate(stock)})

# 10. Names with everything in them, gaps, and cells whose text looks like a formula.
book = openpyxl.Workbook()
ws = book.active
ws.title = "O'Brien & \"Söhne\""
ws["B3"], ws["C3"], ws["D3"] = "Größe", "Preis €", "Größe"
odd = [("<klein> & \"fein\"", 1), ("=1+1", 2), ("@cmd", 3), ("+49 30", 4), ("日本", 5)]
for i, (text, price) in enumerate(odd):
    cell = ws.cell(5 + 2 * i, 2)
    cell.value = text
    cell.data_type = "s"
    ws.cell(5 + 2 * i, 3).value = price
save(book, "odd")
case("odd", """
name = sheets[0]
t = table(name).dropna(how="all")
ws = workbook.create_sheet("Kopie")
for at, (_, row) in enumerate(t.iterrows(), 1):
    ws.cell(at, 1).value = row["Größe"]
    ws.cell(at, 2).value = int(row["Preis €"])
""", {f"Kopie!A{i + 1}": text for i, (text, _) in enumerate(odd)} | {f"Kopie!B{i + 1}": price for i, (_, price) in enumerate(odd)})

# 11. Subtotals between the figures.
book = openpyxl.Workbook()
ws = book.active
ws.title = "Cost"
ws.append(["Group", "Cost"])
cost = {"A": [1, 2, 3], "B": [10, 20]}
for group, values in cost.items():
    for value in values:
        ws.append([group, value])
    ws.append([f"Zwischensumme {group}", sum(values)])
ws.append(["Gesamtsumme", sum(map(sum, cost.values()))])
save(book, "subtotals")
case("subtotals", """
t = table("Cost")
t = t[~t["Group"].str.contains("summe", case=False)]
ws = workbook.create_sheet("Total")
ws.append(["Cost", int(t["Cost"].sum())])
""", {"Total!A1": "Cost", "Total!B1": sum(map(sum, cost.values()))})

with open(f"{FOLDER}/cases.json", "w") as file:
    json.dump(CASES, file)
