//! Markdown tables from the data of a page.

use archie_agent::markdown;
use serde_json::Value as Json;

use super::ROWS_MAX;

/// Renders a table. Each column has a heading, the name of a field, and how to format its cells; `total` is the number of rows
/// before any were cut.
pub(super) fn table(rows: &[Json], columns: &[(&str, &str, Cell)], total: u64) -> String {
    if rows.is_empty() {
        return String::new();
    }
    // A column of nothing but ones says nothing.
    let is_told = |name: &str| rows.len() == 1 || rows.iter().any(|row| row[name] != 1);
    let columns: Vec<_> = columns
        .iter()
        .filter(|(_, name, _)| is_told(name))
        .collect();
    let heads: Vec<&str> = columns.iter().map(|(head, _, _)| *head).collect();
    let mut out = format!(
        "| {} |\n|{}\n",
        heads.join(" | "),
        " --- |".repeat(columns.len())
    );
    for row in rows.iter().take(ROWS_MAX) {
        let cells: Vec<String> = columns
            .iter()
            .map(|(_, name, cell)| cell.of(&row[*name]))
            .collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    let shown = rows.len().min(ROWS_MAX) as u64;
    if total > shown {
        out.push_str(&format!("\nand {} more\n", total - shown));
    }
    out
}

/// How to format a cell.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell {
    Plain,
    Code,
}

impl Cell {
    fn of(self, value: &Json) -> String {
        let text = match value {
            Json::String(text) => text.clone(),
            Json::Null => String::new(),
            Json::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.of(item)).collect();
                return items.join(", ");
            }
            other => other.to_string(),
        };
        match self {
            Self::Code => markdown::code(&text),
            Self::Plain => markdown::text(&text),
        }
    }
}

#[test]
fn a_column_of_ones_is_left_out() {
    let rows =
        [("a", 1), ("b", 1)].map(|(to, files)| serde_json::json!({ "to": to, "files": files }));
    let columns = [("To", "to", Cell::Plain), ("Files", "files", Cell::Plain)];
    assert_eq!(table(&rows, &columns, 2), "| To |\n| --- |\n| a |\n| b |\n");
    let mut more = rows.clone();
    more[1]["files"] = Json::from(2);
    assert!(table(&more, &columns, 2).contains("| Files |"));
}
