import datetime, re


def column(frame, *words):
    """The first column whose name has one of these words, in the order of the words."""
    for word in words:
        for name in frame.columns:
            if re.search(word, name, re.IGNORECASE):
                return name
    return None


def is_total(row):
    return any(isinstance(v, str) and re.match(r"\s*(summe|zwischensumme|gesamt|endsumme|total|subtotal)", v, re.IGNORECASE) for v in row)


def day(value):
    if value is None or value != value:
        return None
    return pd.Timestamp(value).to_pydatetime().date()


best = None
for name in sheets:
    frame = table(name)
    amount = column(frame, r"offen", r"saldo", r"betrag", r"amount")
    due = column(frame, r"f(ä|ae)llig", r"due", r"netto")
    if amount and due and (best is None or len(frame) > len(best[1])):
        best = (name, frame, amount, due)
if best is None:
    raise ValueError("no sheet has a column for the amount (Betrag, Offen, Saldo) and one for the day it is due (Fällig)")
name, frame, amount, due = best
who = column(frame, r"debitor.*name|kunde.*name|^name", r"kunde|debitor|kreditor|firma|customer|name", r"konto")
number = column(frame, r"beleg|rechnung|invoice|opos", r"nr\b|nummer")
if "Analysis" in workbook.sheetnames:
    raise ValueError('there is a sheet "Analysis" already')

as_of = datetime.date.fromisoformat(AS_OF)
totals = frame.apply(lambda row: is_total(list(row)), axis=1)
posts = frame[~totals].copy()
posts[amount] = posts[amount].map(lambda v: float(de_number(v) or 0) if v == v else 0.0)
posts = posts[posts[amount] != 0]
posts["_late"] = posts[due].map(lambda v: (as_of - day(v)).days if day(v) else 0)
cents = lambda values: round(sum(round(float(v) * 100) for v in values)) / 100

ws = workbook.create_sheet("Analysis")
ws.append(["Open posts of", name])
ws.append(["As of", as_of])
ws.append([])
ws.append(["Figure", "Posts", "Amount"])
invoices, credits = posts[posts[amount] > 0], posts[posts[amount] < 0]
ws.append(["Invoices", len(invoices), cents(invoices[amount])])
ws.append(["Credits", len(credits), cents(credits[amount])])
ws.append(["Balance", len(posts), cents(posts[amount])])
ws.append(["Rows of subtotals, not counted", int(totals.sum())])
ws.append([])
ws.append(["Ageing", "Posts", "Amount"])
for label, low, high in (("Not mature", None, 0), ("1-30 days", 1, 30), ("31-60 days", 31, 60), (">60 days", 61, None)):
    part = posts[(posts["_late"] >= low if low is not None else True) & (posts["_late"] <= high if high is not None else True)]
    ws.append([label, len(part), cents(part[amount])])
ws.append([])
if who:
    ws.append(["Top 10", "Posts", "Amount"])
    groups = [(str(key), len(part), cents(part[amount])) for key, part in posts.groupby(who)]
    for key, count, total in sorted(groups, key=lambda g: (-g[2], g[0]))[:10]:
        ws.append([key, count, total])
    ws.append([])
ws.append(["Possible duplicates", "Row", "Amount"])
keys = [key for key in (who, number, amount) if key]
found = posts[posts.duplicated(subset=keys, keep=False)]
for row, post in found.iterrows():
    ws.append([" / ".join(str(post[key]) for key in keys if key != amount), int(row), float(post[amount])])
if found.empty:
    ws.append(["none"])
for row in ws.iter_rows():
    for cell in row:
        if cell.column == 3 and isinstance(cell.value, float):
            cell.number_format = "#,##0.00"
        if isinstance(cell.value, str) and cell.value in ("Figure", "Ageing", "Top 10", "Possible duplicates"):
            for head in row:
                head.font = openpyxl.styles.Font(bold=True)
print(f"{len(posts)} open posts, balance {cents(posts[amount])}")
