//! The tasks. Every expected result is computed from the plain rows, not from the workbook.

use std::collections::{BTreeMap, BTreeSet};

use super::data::{Numbers, SheetData, Value, german};
use super::{CellValue, Expected, Task};

/// Returns the tasks of every workbook.
pub(super) fn all() -> Vec<Task> {
    let books = [
        orders, staff, stock, posts, survey, contacts, budget, grades, visits, invoices,
    ];
    books.into_iter().flat_map(|book| book()).collect()
}

/// Identifies a task: name, instruction and reference solution.
type Text = (&'static str, &'static str, &'static str);

fn three(sheets: &[SheetData], tasks: [(Text, Expected); 3]) -> Vec<Task> {
    let task = |((id, instruction, reference), expected): (Text, Expected)| Task {
        id,
        instruction,
        reference,
        sheets: sheets.to_vec(),
        expected,
    };
    tasks.into_iter().map(task).collect()
}

fn sums<'a>(rows: impl Iterator<Item = (&'a str, f64)>) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for (name, figure) in rows {
        *sums.entry(name.to_owned()).or_insert(0.0) += figure;
    }
    sums
}

/// Expects the name with the highest figure, and none of the others.
fn highest(figures: &BTreeMap<String, f64>) -> Expected {
    let top = figures.values().copied().fold(f64::MIN, f64::max);
    let (named, others) = figures
        .iter()
        .partition::<Vec<_>, _>(|(_, figure)| **figure == top);
    let names = |of: Vec<(&String, &f64)>| of.into_iter().map(|(name, _)| name.clone()).collect();
    Expected::Names {
        named: names(named),
        others: names(others),
    }
}

fn table(figures: BTreeMap<String, f64>) -> Expected {
    Expected::NewTable(figures.into_iter().collect())
}

const REGIONS: &[&str] = &["North", "South", "East", "West"];

fn orders() -> Vec<Task> {
    let mut numbers = Numbers::new(1);
    let rows: Vec<_> = (0..40)
        .map(|_| {
            let region = numbers.pick(REGIONS);
            let product = numbers.pick(&["Tea", "Coffee", "Milk"]);
            (
                region,
                product,
                numbers.below(90_000) as f64 / 100.0,
                numbers.below(20) as f64 + 1.0,
            )
        })
        .collect();
    let sheet = SheetData::new(
        "Orders 2026",
        &["Region", "Product", "Net amount", "Units"],
        rows.iter()
            .map(|(region, product, amount, units)| {
                vec![
                    (*region).into(),
                    (*product).into(),
                    (*amount).into(),
                    (*units).into(),
                ]
            })
            .collect(),
    );
    let total = rows.iter().map(|row| row.2).sum();
    let tea = rows
        .iter()
        .filter(|row| row.1 == "Tea")
        .map(|row| row.3)
        .sum();
    let regions = sums(rows.iter().map(|row| (row.0, row.2)));
    three(
        &[sheet],
        [
            (
                (
                    "orders-total",
                    "What is the sum of all net amounts?",
                    r#"SELECT SUM("Net amount") FROM "Orders 2026""#,
                ),
                Expected::Figures(vec![total]),
            ),
            (
                (
                    "orders-tea",
                    "How many units of Tea were ordered?",
                    r#"SELECT SUM("Units") FROM "Orders 2026" WHERE "Product" = 'Tea'"#,
                ),
                Expected::Figures(vec![tea]),
            ),
            (
                (
                    "orders-regions",
                    "Put the sum of the net amount of each region into a new sheet Regions, a row for each region.",
                    "ws = workbook.create_sheet('Regions')\nfor name, total in table('Orders 2026').groupby('Region')['Net amount'].sum().items():\n    ws.append([name, float(total)])",
                ),
                table(regions),
            ),
        ],
    )
}

fn staff() -> Vec<Task> {
    let mut numbers = Numbers::new(2);
    let names = [
        "Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jana", "Kai", "Lea",
    ];
    let rows: Vec<_> = names
        .iter()
        .map(|name| {
            (
                *name,
                numbers.pick(&["Sales", "IT", "Finance"]),
                (30 + numbers.below(60)) as f64 * 1_000.0,
            )
        })
        .collect();
    let sheet = SheetData::new(
        "Staff",
        &["Name", "Department", "Salary"],
        rows.iter()
            .map(|(name, department, salary)| {
                vec![(*name).into(), (*department).into(), (*salary).into()]
            })
            .collect(),
    );
    let it: Vec<f64> = rows
        .iter()
        .filter(|row| row.1 == "IT")
        .map(|row| row.2)
        .collect();
    let average = it.iter().sum::<f64>() / it.len() as f64;
    let best = highest(&rows.iter().map(|row| (row.0.to_owned(), row.2)).collect());
    let counts = sums(rows.iter().map(|row| (row.1, 1.0)));
    three(
        &[sheet],
        [
            (
                (
                    "staff-average",
                    "What is the average salary in the department IT?",
                    r#"SELECT AVG("Salary") FROM "Staff" WHERE "Department" = 'IT'"#,
                ),
                Expected::Figures(vec![average]),
            ),
            (
                (
                    "staff-best",
                    "Who has the highest salary?",
                    r#"SELECT "Name" FROM "Staff" WHERE "Salary" = (SELECT MAX("Salary") FROM "Staff")"#,
                ),
                best,
            ),
            (
                (
                    "staff-counts",
                    "Count the people of each department in a new sheet, a row for each department.",
                    "ws = workbook.create_sheet('Counts')\nfor name, count in table('Staff').groupby('Department').size().items():\n    ws.append([name, int(count)])",
                ),
                table(counts),
            ),
        ],
    )
}

fn stock() -> Vec<Task> {
    let mut numbers = Numbers::new(3);
    let items = [
        "Bolt", "Nut", "Screw", "Washer", "Hinge", "Lock", "Key", "Bracket",
    ];
    let rows: Vec<_> = items
        .iter()
        .map(|item| {
            (
                *item,
                numbers.below(50) as f64,
                20.0,
                (numbers.below(900) + 100) as f64 / 100.0,
            )
        })
        .collect();
    let sheet = SheetData::new(
        "Stock",
        &["Item", "In stock", "Minimum", "Unit price"],
        rows.iter()
            .map(|(item, stock, minimum, price)| {
                vec![
                    (*item).into(),
                    (*stock).into(),
                    (*minimum).into(),
                    (*price).into(),
                ]
            })
            .collect(),
    );
    let value = rows.iter().map(|row| row.1 * row.3).sum();
    let (low, enough): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.1 < row.2);
    let names =
        |rows: Vec<&(&str, f64, f64, f64)>| rows.iter().map(|row| row.0.to_owned()).collect();
    three(
        &[sheet],
        [
            (
                (
                    "stock-value",
                    "What is all stock worth together (in stock times unit price)?",
                    r#"SELECT SUM("In stock" * "Unit price") FROM "Stock""#,
                ),
                Expected::Figures(vec![value]),
            ),
            (
                (
                    "stock-low",
                    "Which items have less in stock than their minimum?",
                    r#"SELECT "Item" FROM "Stock" WHERE "In stock" < "Minimum""#,
                ),
                Expected::Names {
                    named: names(low),
                    others: names(enough),
                },
            ),
            (
                (
                    "stock-formula",
                    "Add a column Value in E with a formula in each row: in stock times unit price.",
                    "ws = workbook['Stock']\nws['E1'] = 'Value'\nfor row in range(2, 10):\n    ws.cell(row=row, column=5).value = formula(f'=B{row}*D{row}')",
                ),
                Expected::Cells(vec![
                    ("Stock", "E1", CellValue::Text("Value".to_owned())),
                    ("Stock", "E2", CellValue::Formula),
                    ("Stock", "E9", CellValue::Formula),
                ]),
            ),
        ],
    )
}

fn posts() -> Vec<Task> {
    let mut numbers = Numbers::new(4);
    let mut rows = Vec::new();
    let (mut values, mut all) = (BTreeMap::new(), 0.0);
    for customer in ["Alpha", "Beta", "Gamma"] {
        let posts: Vec<f64> = (0..4)
            .map(|_| numbers.below(100_000) as f64 / 100.0)
            .collect();
        let total: f64 = posts.iter().sum();
        for (at, post) in posts.iter().enumerate() {
            rows.push(vec![
                customer.into(),
                Value::Text(format!("R-{customer}-{at}")),
                (*post).into(),
            ]);
        }
        rows.push(vec![
            Value::Text(format!("Summe {customer}")),
            Value::None,
            total.into(),
        ]);
        values.insert(customer.to_owned(), total);
        all += total;
    }
    let sheet = SheetData::new("OPOS", &["Kunde", "Beleg", "Betrag"], rows);
    three(
        &[sheet],
        [
            (
                (
                    "posts-total",
                    "What is the total of all open posts? Rows that begin with Summe are subtotals and must not be counted.",
                    r#"SELECT SUM("Betrag") FROM "OPOS" WHERE "Beleg" IS NOT NULL"#,
                ),
                Expected::Figures(vec![all]),
            ),
            (
                (
                    "posts-count",
                    "How many posts are there, without the subtotal rows?",
                    r#"SELECT COUNT(*) FROM "OPOS" WHERE "Beleg" IS NOT NULL"#,
                ),
                Expected::Figures(vec![12.0]),
            ),
            (
                (
                    "posts-customers",
                    "Put the total of each customer (Kunde) into a new sheet, without the subtotal rows.",
                    "posts = table('OPOS')\nposts = posts[posts['Beleg'].notna()]\nws = workbook.create_sheet('Totals')\nfor name, total in posts.groupby('Kunde')['Betrag'].sum().items():\n    ws.append([name, float(total)])",
                ),
                table(values),
            ),
        ],
    )
}

fn survey() -> Vec<Task> {
    let mut numbers = Numbers::new(5);
    let rows: Vec<_> = (1..=25)
        .map(|at| {
            (
                format!("P{at:02}"),
                (at % 6 != 0).then(|| numbers.below(10) as f64 + 1.0),
            )
        })
        .collect();
    let sheet = SheetData::new(
        "Survey",
        &["Participant", "Score"],
        rows.iter()
            .map(|(name, score)| {
                vec![
                    Value::Text(name.clone()),
                    score.map_or(Value::None, Value::Figure),
                ]
            })
            .collect(),
    );
    let scores: Vec<f64> = rows.iter().filter_map(|row| row.1).collect();
    let missing = (rows.len() - scores.len()) as f64;
    let mean = scores.iter().sum::<f64>() / scores.len() as f64;
    let mean = (mean * 100.0).round() / 100.0;
    let above = scores.iter().filter(|score| **score >= 8.0).count() as f64;
    three(
        &[sheet],
        [
            (
                (
                    "survey-mean",
                    "What is the mean score, rounded to two decimals? Leave out participants without a score.",
                    r#"SELECT ROUND(AVG("Score"), 2) FROM "Survey""#,
                ),
                Expected::Figures(vec![mean]),
            ),
            (
                (
                    "survey-missing",
                    "How many participants have no score?",
                    r#"SELECT COUNT(*) FROM "Survey" WHERE "Score" IS NULL"#,
                ),
                Expected::Figures(vec![missing]),
            ),
            (
                (
                    "survey-promoters",
                    "Write the number of participants with a score of 8 or more into cell D1 of the sheet Survey.",
                    "workbook['Survey']['D1'] = int((table('Survey')['Score'] >= 8).sum())",
                ),
                Expected::Cells(vec![("Survey", "D1", CellValue::Figure(above))]),
            ),
        ],
    )
}

fn contacts() -> Vec<Task> {
    let mails = [
        "ada@a.example",
        "ben@b.example",
        "ada@a.example",
        "cleo@c.example",
        "dan@a.example",
        "ben@b.example",
        "eva@c.example",
        "ada@a.example",
    ];
    let sheet = SheetData::new(
        "Contacts",
        &["No", "E-mail"],
        (1..)
            .zip(mails)
            .map(|(at, mail)| vec![f64::from(at).into(), mail.into()])
            .collect(),
    );
    let unique: BTreeSet<_> = mails.iter().collect();
    let counts = sums(mails.iter().map(|mail| (*mail, 1.0)));
    let domains = sums(
        mails
            .iter()
            .map(|mail| (mail.split('@').nth(1).unwrap_or_default(), 1.0)),
    );
    three(
        &[sheet],
        [
            (
                (
                    "contacts-unique",
                    "How many different e-mail addresses are there?",
                    r#"SELECT COUNT(DISTINCT "E-mail") FROM "Contacts""#,
                ),
                Expected::Figures(vec![unique.len() as f64]),
            ),
            (
                (
                    "contacts-most",
                    "Which e-mail address occurs most often?",
                    r#"SELECT "E-mail" FROM "Contacts" GROUP BY 1 ORDER BY COUNT(*) DESC LIMIT 1"#,
                ),
                highest(&counts),
            ),
            (
                (
                    "contacts-domains",
                    "Count the rows of each mail domain (the part after the @) in a new sheet, a row for each domain.",
                    "ws = workbook.create_sheet('Domains')\nfor name, count in table('Contacts')['E-mail'].str.split('@').str[1].value_counts().items():\n    ws.append([name, int(count)])",
                ),
                table(domains),
            ),
        ],
    )
}

fn budget() -> Vec<Task> {
    let mut numbers = Numbers::new(7);
    let rows: Vec<_> = ["Rent", "Travel", "Wages", "Software", "Events"]
        .map(|item| {
            (
                item,
                numbers.below(90) as f64 * 100.0 + 1_000.0,
                numbers.below(90) as f64 * 100.0 + 1_000.0,
            )
        })
        .into();
    let side = |name, of: fn(&(&'static str, f64, f64)) -> f64| {
        SheetData::new(
            name,
            &["Item", "Amount"],
            rows.iter()
                .map(|row| vec![row.0.into(), of(row).into()])
                .collect(),
        )
    };
    let sheets = [side("Plan", |row| row.1), side("Actual", |row| row.2)];
    let differences: BTreeMap<_, _> = rows
        .iter()
        .map(|row| (row.0.to_owned(), row.2 - row.1))
        .collect();
    let over = rows.iter().map(|row| row.2 - row.1).sum();
    three(
        &sheets,
        [
            (
                (
                    "budget-total",
                    "By how much is the sum of Actual above the sum of Plan? A negative number if it is below.",
                    r#"SELECT (SELECT SUM("Amount") FROM "Actual") - (SELECT SUM("Amount") FROM "Plan")"#,
                ),
                Expected::Figures(vec![over]),
            ),
            (
                (
                    "budget-worst",
                    "Which item is furthest above its plan?",
                    r#"SELECT a."Item" FROM "Actual" a JOIN "Plan" p ON a."Item" = p."Item" ORDER BY a."Amount" - p."Amount" DESC LIMIT 1"#,
                ),
                highest(&differences),
            ),
            (
                (
                    "budget-differences",
                    "Put actual minus plan for each item into a new sheet Difference.",
                    "both = table('Plan').merge(table('Actual'), on='Item')\nws = workbook.create_sheet('Difference')\nfor _, row in both.iterrows():\n    ws.append([row['Item'], float(row['Amount_y'] - row['Amount_x'])])",
                ),
                table(differences),
            ),
        ],
    )
}

fn grades() -> Vec<Task> {
    let mut numbers = Numbers::new(8);
    let names = ["Mia", "Noah", "Lina", "Omar", "Paul", "Rosa"];
    let rows: Vec<_> = names
        .map(|name| (name, [(); 3].map(|()| numbers.below(15) as f64 + 1.0)))
        .into();
    let sheet = SheetData::new(
        "Grades",
        &["Student", "Maths", "Physics", "English"],
        rows.iter()
            .map(|(name, points)| {
                vec![
                    (*name).into(),
                    points[0].into(),
                    points[1].into(),
                    points[2].into(),
                ]
            })
            .collect(),
    );
    let totals: BTreeMap<_, _> = rows
        .iter()
        .map(|(name, points)| ((*name).to_owned(), points.iter().sum::<f64>()))
        .collect();
    let physics = rows.iter().map(|row| row.1[1]).fold(f64::MIN, f64::max);
    three(
        &[sheet],
        [
            (
                (
                    "grades-physics",
                    "What is the highest number of points in Physics?",
                    r#"SELECT MAX("Physics") FROM "Grades""#,
                ),
                Expected::Figures(vec![physics]),
            ),
            (
                (
                    "grades-best",
                    "Who has the most points in all three subjects together?",
                    r#"SELECT "Student" FROM "Grades" WHERE "Maths" + "Physics" + "English" = (SELECT MAX("Maths" + "Physics" + "English") FROM "Grades")"#,
                ),
                highest(&totals),
            ),
            (
                (
                    "grades-totals",
                    "Put the sum of the three subjects for each student into a new sheet Totals.",
                    "ws = workbook.create_sheet('Totals')\nfor _, row in table('Grades').iterrows():\n    ws.append([row['Student'], int(row['Maths'] + row['Physics'] + row['English'])])",
                ),
                table(totals),
            ),
        ],
    )
}

fn visits() -> Vec<Task> {
    let mut numbers = Numbers::new(9);
    // The days from 2026-01-01 on.
    let rows: Vec<_> = (0..31)
        .map(|day| {
            (
                46_023.0 + f64::from(day),
                numbers.below(500) as f64 + 100.0,
                numbers.below(40) as f64,
            )
        })
        .collect();
    let sheet = SheetData::new(
        "Visits",
        &["Day", "Visits", "Sign-ups"],
        rows.iter()
            .map(|(day, visits, signups)| {
                vec![Value::Day(*day), (*visits).into(), (*signups).into()]
            })
            .collect(),
    );
    let busy = rows.iter().filter(|row| row.1 > 400.0).count() as f64;
    let last: f64 = rows[24..].iter().map(|row| row.1).sum();
    let (all, signups): (f64, f64) = (
        rows.iter().map(|row| row.1).sum(),
        rows.iter().map(|row| row.2).sum(),
    );
    three(
        &[sheet],
        [
            (
                (
                    "visits-busy",
                    "On how many days were there more than 400 visits?",
                    r#"SELECT COUNT(*) FROM "Visits" WHERE "Visits" > 400"#,
                ),
                Expected::Figures(vec![busy]),
            ),
            (
                (
                    "visits-last-week",
                    "How many visits were there from 2026-01-25 to 2026-01-31 in total?",
                    r#"SELECT SUM("Visits") FROM "Visits" WHERE "Day" >= '2026-01-25' AND "Day" <= '2026-01-31'"#,
                ),
                Expected::Figures(vec![last]),
            ),
            (
                (
                    "visits-totals",
                    "Put two rows into a new sheet: Visits with the sum of all visits, and Sign-ups with the sum of all sign-ups.",
                    "data = table('Visits')\nws = workbook.create_sheet('Sums')\nfor name in ('Visits', 'Sign-ups'):\n    ws.append([name, int(data[name].sum())])",
                ),
                Expected::NewTable(vec![
                    ("Visits".to_owned(), all),
                    ("Sign-ups".to_owned(), signups),
                ]),
            ),
        ],
    )
}

fn invoices() -> Vec<Task> {
    let mut numbers = Numbers::new(10);
    let rows: Vec<_> = (0..15)
        .map(|_| {
            (
                numbers.pick(&["Adler", "Birke", "Celle"]),
                (numbers.below(500_000) + 100_000) as f64 / 100.0,
            )
        })
        .collect();
    let sheet = SheetData::new(
        "Rechnungen",
        &["Kunde", "Betrag"],
        rows.iter()
            .map(|(customer, amount)| vec![(*customer).into(), Value::Text(german(*amount))])
            .collect(),
    );
    let total = rows.iter().map(|row| row.1).sum();
    let customers = sums(rows.iter().copied());
    three(
        &[sheet],
        [
            (
                (
                    "invoices-total",
                    "What is the sum of all amounts (Betrag)? They are written the German way.",
                    r#"SELECT SUM("Betrag") FROM "Rechnungen""#,
                ),
                Expected::Figures(vec![total]),
            ),
            (
                (
                    "invoices-largest",
                    "Which customer (Kunde) has the highest total?",
                    r#"SELECT "Kunde" FROM "Rechnungen" GROUP BY 1 ORDER BY SUM("Betrag") DESC LIMIT 1"#,
                ),
                highest(&customers),
            ),
            (
                (
                    "invoices-customers",
                    "Put the total of each customer (Kunde) into a new sheet as a number, a row for each customer.",
                    "ws = workbook.create_sheet('Kunden')\nfor name, total in table('Rechnungen').groupby('Kunde')['Betrag'].sum().items():\n    ws.append([name, float(total)])",
                ),
                table(customers),
            ),
        ],
    )
}
