"""Makes a German list of open posts with subtotals, and prints what must stand in the analysis of it."""
import datetime, json, random, sys

import openpyxl


def german(number):
    text = f"{abs(number):,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")
    return text + ("-" if number < 0 else "")


random.seed(8)
AS_OF = datetime.date(2024, 12, 31)
customers = [f"Kunde {i:02}" for i in range(14)]
posts = {}
for at, customer in enumerate(customers):
    posts[customer] = [
        (f"R{at:02}{i}", AS_OF - datetime.timedelta(days=random.randrange(-40, 120)), round(random.uniform(10, 5000), 2))
        for i in range(random.randrange(2, 6))
    ]
    if at % 4 == 0:
        posts[customer].append((f"G{at:02}", AS_OF - datetime.timedelta(days=5), -round(random.uniform(10, 200), 2)))
posts[customers[3]].append(posts[customers[3]][0])

book = openpyxl.Workbook()
ws = book.active
ws.title = "OPOS"
ws["A1"] = "Offene-Posten-Liste"
ws.merge_cells("A1:E1")
ws.append([])
ws.append(["Debitor ", "Beleg-Nr.", "Fällig am", "Offener Betrag", "Währung"])
row, rows = 4, []
for customer, items in posts.items():
    for number, due, amount in items:
        ws.append([customer, number, due.strftime("%d.%m.%Y"), german(amount), "EUR"])
        rows.append((row, customer, number, due, amount))
        row += 1
    ws.append([f"Summe {customer}", None, None, german(sum(a for _, _, a in items))])
    row += 1
ws.append(["Gesamtsumme", None, None, german(sum(r[4] for r in rows))])
book.save(f"{sys.argv[1]}/opos.xlsx")

total = lambda chosen: round(sum(r[4] for r in chosen), 2)
late = lambda r: (AS_OF - r[3]).days
parts = [
    [r for r in rows if late(r) <= 0],
    [r for r in rows if 1 <= late(r) <= 30],
    [r for r in rows if 31 <= late(r) <= 60],
    [r for r in rows if late(r) > 60],
]
invoices, credits = [r for r in rows if r[4] > 0], [r for r in rows if r[4] < 0]
expected = {"Analysis!A5": "Invoices", "Analysis!B5": len(invoices), "Analysis!C5": total(invoices), "Analysis!B6": len(credits),
            "Analysis!C6": total(credits), "Analysis!B7": len(rows), "Analysis!C7": total(rows), "Analysis!B8": len(customers) + 1}
for at, part in enumerate(parts):
    expected[f"Analysis!B{11 + at}"], expected[f"Analysis!C{11 + at}"] = len(part), total(part)
sums = {c: total([r for r in rows if r[1] == c]) for c in customers}
top = sorted(sums.items(), key=lambda s: (-s[1], s[0]))[:10]
for at, (customer, amount) in enumerate(top):
    expected[f"Analysis!A{17 + at}"], expected[f"Analysis!C{17 + at}"] = customer, amount
double = [r for r in rows if r[2] == posts[customers[3]][0][0]]
for at, post in enumerate(double):
    expected[f"Analysis!B{29 + at}"], expected[f"Analysis!C{29 + at}"] = post[0], post[4]
print(json.dumps(expected))
