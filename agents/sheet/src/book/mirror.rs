//! The workbook as an in-memory SQLite database with one table per sheet, for one `SELECT` at a time.
//!
//! SQLite itself enforces that only a `SELECT` runs: before a statement does anything, it asks the authorizer about every
//! action, and the authorizer denies everything but reads.

use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::layout::{Layout, Type, german_date, german_number};
use super::{Book, Content, Place, Sheet, date_text};

/// An in-memory SQLite copy of a workbook.
#[derive(Debug)]
pub struct Mirror {
    database: Connection,
    /// Quoted names of the tables, and of their columns.
    tables: Vec<(String, Vec<String>)>,
}

/// Result of a `SELECT`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// Column names.
    pub columns: Vec<String>,
    /// Cells as text, row by row; `None` for NULL. Long texts are cut.
    pub rows: Vec<Vec<Option<String>>>,
    /// Whether the query had more rows than are included.
    pub is_cut: bool,
}

/// Format in which rows are shown to a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// A Markdown table.
    #[default]
    Markdown,
    /// A JSON array of objects.
    Json,
    /// An HTML table.
    Html,
}

impl Mirror {
    /// Creates the mirror of a whole workbook. Sheets without columns get no table.
    pub fn of(book: &Book) -> rusqlite::Result<Self> {
        let mut database = Connection::open_in_memory()?;
        // Otherwise SQLite takes a misspelt name in double quotes for a text, and the query returns that text.
        database.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
        let mut tables = Vec::new();
        let all = database.transaction()?;
        for sheet in &book.sheets {
            let layout = Layout::of(sheet);
            if layout.columns.is_empty() {
                continue;
            }
            fill(&all, sheet, &layout)?;
            tables.push((quoted(&sheet.name), column_names(&layout)));
        }
        all.commit()?;
        database.pragma_update(None, "query_only", true)?;
        database.authorizer(Some(|asked: AuthContext<'_>| allow(&asked)))?;
        Ok(Self { database, tables })
    }

    /// Returns an error of [`select`](Self::select) as text for a model, with the names that it may use as it must write them.
    pub fn explain(&self, error: &rusqlite::Error) -> String {
        let mut text = format!(
            "SQLite says: {error}\nWrite the names of sheets and columns in double quotes, exactly as here, and text in single quotes:\n"
        );
        for (table, columns) in self.tables.iter().take(TABLES_EXPLAINED) {
            let shown: Vec<_> = columns.iter().take(COLUMNS_EXPLAINED).cloned().collect();
            let more = match columns.len() > COLUMNS_EXPLAINED {
                true => format!(" and {} more", columns.len() - COLUMNS_EXPLAINED),
                false => String::new(),
            };
            text.push_str(&format!("- FROM {table}: {}{more}\n", shown.join(", ")));
        }
        if self.tables.len() > TABLES_EXPLAINED {
            let more = self.tables.len() - TABLES_EXPLAINED;
            text.push_str(&format!("- and {more} more sheets\n"));
        }
        text
    }

    /// Runs one `SELECT`. Fails if it takes longer than five seconds.
    pub fn select(&mut self, sql: &str) -> rusqlite::Result<Rows> {
        let begun = Instant::now();
        self.database
            .progress_handler(1_000, Some(move || begun.elapsed() > PATIENCE))?;
        let mut statement = self.database.prepare(sql)?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let width = columns.len();
        let mut found = Rows {
            columns,
            rows: Vec::new(),
            is_cut: false,
        };
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if found.rows.len() == ROWS_MAX {
                found.is_cut = true;
                break;
            }
            let cells = (0..width).map(|at| Ok(text(row.get_ref(at)?)));
            found.rows.push(cells.collect::<rusqlite::Result<_>>()?);
        }
        Ok(found)
    }
}

fn allow(asked: &AuthContext<'_>) -> Authorization {
    match asked.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => {
            Authorization::Allow
        }
        AuthAction::Function { function_name }
            if !FUNCTIONS_REFUSED.contains(&function_name.to_lowercase().as_str()) =>
        {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }
}

/// Functions that reach outside the database, or create large values from nothing.
const FUNCTIONS_REFUSED: &[&str] = &[
    "load_extension",
    "readfile",
    "writefile",
    "edit",
    "zeroblob",
    "randomblob",
    "fts3_tokenizer",
];

fn fill(database: &Connection, sheet: &Sheet, layout: &Layout) -> rusqlite::Result<()> {
    let columns = column_names(layout);
    database.execute(
        &format!(
            "CREATE TABLE {} ({})",
            quoted(&sheet.name),
            columns.join(", ")
        ),
        [],
    )?;
    let marks = vec!["?"; columns.len()].join(", ");
    let mut insert = database.prepare(&format!(
        "INSERT INTO {} VALUES ({marks})",
        quoted(&sheet.name)
    ))?;
    let mut rows = sheet
        .values
        .range(
            Place {
                row: layout.first_row,
                column: 0,
            }..,
        )
        .peekable();
    while let Some(row) = rows.peek().map(|(place, _)| place.row) {
        let mut values = vec![Value::Null; columns.len()];
        values[0] = Value::Integer(row.into());
        while let Some((place, content)) = rows.next_if(|(place, _)| place.row == row) {
            let Some(at) = place
                .column
                .checked_sub(layout.first_column)
                .map(|at| at as usize)
            else {
                continue;
            };
            if let (Some(value), Some(kind)) = (values.get_mut(at + 1), layout.types.get(at)) {
                *value = mirrored(content, *kind);
            }
        }
        insert.execute(params_from_iter(values))?;
    }
    Ok(())
}

/// Returns the quoted names of a table's columns: the row in the sheet, then those of the layout.
fn column_names(layout: &Layout) -> Vec<String> {
    let is_row = |column: &String| column.eq_ignore_ascii_case("row");
    let row_name = match layout.columns.iter().any(is_row) {
        true => "sheet row",
        false => "row",
    };
    let names = std::iter::once(row_name).chain(layout.columns.iter().map(String::as_str));
    names.map(quoted).collect()
}

/// Returns a `SELECT` over the first sheet with columns that shows how its names are quoted; empty if there is none.
pub fn select_example(book: &Book) -> String {
    let layouts = book
        .sheets
        .iter()
        .map(|sheet| (&sheet.name, Layout::of(sheet)));
    let Some((name, layout)) = layouts
        .into_iter()
        .find(|(_, layout)| !layout.columns.is_empty())
    else {
        return String::new();
    };
    let of = |kinds: &[Type]| {
        let mut columns = layout.columns.iter().zip(&layout.types);
        let found = columns.find(|(_, kind)| kinds.contains(*kind));
        found.map(|(column, _)| quoted(column))
    };
    let table = quoted(name);
    match (of(&[Type::Text]), of(&[Type::Number, Type::GermanNumber])) {
        // Two, because a small model copies the form of an only one, whatever was asked.
        (Some(text), Some(number)) => format!(
            "SELECT {text}, SUM({number}) FROM {table} GROUP BY {text} or SELECT AVG({number}) FROM {table} WHERE {text} = 'x'"
        ),
        (Some(text), None) => format!("SELECT {text}, COUNT(*) FROM {table} GROUP BY {text}"),
        (None, Some(number)) => format!("SELECT SUM({number}) FROM {table}"),
        (None, None) => format!("SELECT COUNT(*) FROM {table}"),
    }
}

fn mirrored(content: &Content, kind: Type) -> Value {
    match content {
        Content::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
            Value::Integer(*number as i64)
        }
        Content::Number(number) => Value::Real(*number),
        Content::Bool(yes) => Value::Integer((*yes).into()),
        Content::Date(days) => Value::Text(date_text(*days)),
        Content::Error(error) => Value::Text(error.clone()),
        Content::Formula(formula) => Value::Text(format!("={formula}")),
        Content::Text(text) => match kind {
            Type::GermanNumber => {
                german_number(text).map_or_else(|| Value::Text(text.clone()), Value::Real)
            }
            Type::GermanDate => german_date(text).map_or_else(
                || Value::Text(text.clone()),
                |days| Value::Text(date_text(days)),
            ),
            _ => Value::Text(text.clone()),
        },
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(text) => Some(shortened(&String::from_utf8_lossy(text))),
        ValueRef::Blob(blob) => Some(format!("{} bytes", blob.len())),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

impl Rows {
    /// Returns the rows as text for a model, with a note if they were cut.
    pub fn shown(&self, form: Form) -> String {
        let cell = |cell: &Option<String>| cell.clone().unwrap_or_default();
        let mut shown = match form {
            Form::Markdown => {
                let line =
                    |cells: Vec<String>| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
                let mut text = line(self.columns.clone());
                text.push_str(&line(vec!["---".to_owned(); self.columns.len()]));
                self.rows
                    .iter()
                    .for_each(|row| text.push_str(&line(row.iter().map(cell).collect())));
                text
            }
            Form::Json => {
                let rows = self.rows.iter().map(|row| {
                    let cells = self
                        .columns
                        .iter()
                        .cloned()
                        .zip(row.iter().map(|cell| serde_json::json!(cell)));
                    serde_json::Value::Object(cells.collect())
                });
                format!("{}\n", serde_json::Value::Array(rows.collect()))
            }
            Form::Html => {
                let escape = |text: String| text.replace('&', "&amp;").replace('<', "&lt;");
                let line = |tag: &str, cells: Vec<String>| {
                    let cells = cells
                        .into_iter()
                        .map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)));
                    format!("<tr>{}</tr>", cells.collect::<String>())
                };
                let rows = self
                    .rows
                    .iter()
                    .map(|row| line("td", row.iter().map(cell).collect()));
                format!(
                    "<table>{}{}</table>\n",
                    line("th", self.columns.clone()),
                    rows.collect::<String>()
                )
            }
        };
        if self.is_cut {
            shown.push_str(&format!("(only the first {ROWS_MAX} rows are shown)\n"));
        }
        shown
    }
}

const ROWS_MAX: usize = 30;
const TEXT_MAX: usize = 200;
const TABLES_EXPLAINED: usize = 10;
const COLUMNS_EXPLAINED: usize = 30;
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn mirror() -> Mirror {
        Mirror::of(&book()).unwrap()
    }

    fn book() -> Book {
        let mut sheet = Sheet {
            name: "Sales \"1\"".to_owned(),
            ..Sheet::default()
        };
        for (at, content) in [
            ("A1", Content::Text("Product ".to_owned())),
            ("B1", Content::Text("Betrag".to_owned())),
            ("A2", Content::Text("Tea".to_owned())),
            ("B2", Content::Text("1.234,50".to_owned())),
            ("A3", Content::Text("'; DROP TABLE x; --".to_owned())),
            ("B3", Content::Text("0,50".to_owned())),
        ] {
            sheet.values.insert(Place::parse(at).unwrap(), content);
        }
        Book {
            sheets: vec![sheet],
        }
    }

    #[test]
    fn b4_a_select_sees_numbers_where_germans_wrote_text() {
        let found = mirror()
            .select(r#"SELECT sum("Betrag") AS s, max("row") AS r FROM "Sales ""1""" "#)
            .unwrap();
        assert_eq!(
            found.rows,
            [[Some("1235".to_owned()), Some("3".to_owned())]]
        );
        assert_eq!(
            found.shown(Form::Markdown),
            "| s | r |\n| --- | --- |\n| 1235 | 3 |\n"
        );
    }

    #[test]
    fn an_error_shows_the_names_as_they_must_be_quoted() {
        let mut mirror = mirror();
        for sql in [
            "SELECT Betrag FROM Sales 1",
            r#"SELECT "betrag total" FROM "Sales ""1""""#,
            r#"SELECT "Product" FROM "Sales ""1""" WHERE "Product" = "Tea""#,
        ] {
            let error = mirror.select(sql).expect_err(sql);
            let told = mirror.explain(&error);
            assert!(
                told.contains(r#"- FROM "Sales ""1""": "row", "Product", "Betrag""#),
                "{told}"
            );
        }
    }

    #[test]
    fn the_examples_are_selects_that_run() {
        let book = book();
        let example = select_example(&book);
        assert_eq!(
            example,
            r#"SELECT "Product", SUM("Betrag") FROM "Sales ""1""" GROUP BY "Product" or SELECT AVG("Betrag") FROM "Sales ""1""" WHERE "Product" = 'x'"#
        );
        for (example, rows) in example.split(" or ").zip([2, 1]) {
            assert_eq!(mirror().select(example).unwrap().rows.len(), rows);
        }
        assert_eq!(select_example(&Book::default()), "");
    }

    #[test]
    fn b4_sqlite_itself_refuses_all_but_a_select() {
        let mut mirror = mirror();
        for sql in [
            r#"DELETE FROM "Sales ""1""""#,
            "CREATE TABLE x (a)",
            "ATTACH '/tmp/archie-mirror-test.db' AS other",
            "PRAGMA query_only = false",
            "SELECT load_extension('x')",
            "WITH x AS (SELECT 1) INSERT INTO y SELECT * FROM x",
            "VACUUM INTO '/tmp/archie-mirror-test.db'",
            "SELECT zeroblob(1000000000)",
            "SELECT * FROM pragma_database_list",
        ] {
            mirror.select(sql).expect_err(sql);
        }
        assert!(!std::path::Path::new("/tmp/archie-mirror-test.db").exists());
        mirror
            .select("SELECT 1; DROP TABLE x")
            .expect_err("one statement only");
    }

    #[test]
    fn b4_a_select_that_never_ends_is_ended() {
        let begun = Instant::now();
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        mirror().select(endless).unwrap_err();
        assert!(begun.elapsed() < PATIENCE + Duration::from_secs(2));
    }
}
