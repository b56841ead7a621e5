//! What changed in the looks of a workbook: what is carried over, and what cannot be.

use std::collections::{BTreeMap, BTreeSet};

use archie_agent::printable::summary_line;

use super::super::style::{Dress, NumberFormat};
use super::super::tree::Element;
use super::super::{Place, letters};
use super::Looks;
use super::charts::Chart;
use super::sheet::{ColumnLook, ConditionalFormat, SheetLooks};
use crate::changes::areas;

/// What changed in the looks of a workbook, sheet by sheet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LookChanges {
    /// Sheets with changes, in the order of the workbook.
    pub sheets: Vec<SheetLookChanges>,
}

/// What changed in the looks of a sheet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SheetLookChanges {
    /// Name of the sheet.
    pub sheet: String,
    /// Whether the sheet cannot be carried over at all, because it has no cells.
    pub is_chart_sheet: bool,
    /// What changed in the formats of cells.
    pub(crate) dresses: BTreeMap<Place, Dress>,
    pub(crate) columns: BTreeMap<u32, ColumnLook>,
    pub(crate) conditional: Vec<ConditionalFormat>,
    pub(crate) charts: Vec<Chart>,
    /// What changed and is not carried over, as text for the person.
    pub left_out: Vec<String>,
}

impl Looks {
    /// Returns what changed from `self` to `new`.
    pub fn changes(&self, new: &Self) -> LookChanges {
        let none = SheetLooks::default();
        let changes = new.sheets.iter().map(|sheet| {
            let old = self.sheet(&sheet.name);
            let fresh = || SheetLooks {
                usual: sheet.usual.clone(),
                ..none.clone()
            };
            match old {
                Some(old) => changes(old, sheet, false),
                None => changes(&fresh(), sheet, true),
            }
        });
        LookChanges {
            sheets: changes.filter(|sheet| !sheet.is_empty()).collect(),
        }
    }
}

fn changes(old: &SheetLooks, new: &SheetLooks, is_new: bool) -> SheetLookChanges {
    let mut found = SheetLookChanges {
        sheet: new.name.clone(),
        is_chart_sheet: is_new && !new.has_cells,
        ..SheetLookChanges::default()
    };
    if found.is_chart_sheet {
        found
            .left_out
            .push("the sheet, which is a chart".to_owned());
        return found;
    }
    let places: BTreeSet<_> = old.styles.keys().chain(new.styles.keys()).collect();
    for place in places {
        let before = old.styles.get(place).unwrap_or(&old.usual);
        let after = new.styles.get(place).unwrap_or(&new.usual);
        if before != after {
            found.dresses.insert(*place, after.changed_from(before));
        }
    }
    let columns: BTreeSet<_> = old.columns.keys().chain(new.columns.keys()).collect();
    for column in columns {
        let after = new.columns.get(column);
        if old.columns.get(column) != after {
            let look = after.cloned().unwrap_or_default();
            found.columns.insert(*column, look);
        }
    }
    let (added, removed) = compared(&old.conditional, &new.conditional);
    found.conditional = added;
    if removed > 0 {
        found
            .left_out
            .push("removed conditional formats".to_owned());
    }
    let (added, removed) = compared(&old.charts, &new.charts);
    found.charts = added;
    if removed > 0 {
        found.left_out.push("removed or changed charts".to_owned());
    }
    let (added, _) = compared(&old.left_out, &new.left_out);
    found.left_out.extend(added);
    let others: BTreeSet<_> = old.others.keys().chain(new.others.keys()).collect();
    for what in others {
        let (before, after) = (old.others.get(*what), new.others.get(*what));
        // Every sheet has a view; one that only names itself says nothing.
        let is_usual = is_new
            && *what == "frozen panes or the view"
            && after.is_some_and(|view| !view.contains("<pane"));
        if before != after && !is_usual {
            found.left_out.push((*what).to_owned());
        }
    }
    found
}

/// Returns what is in `new` and not in `old`, and how many of `old` are not in `new`. Equal items count as often as they occur.
fn compared<T: Clone + PartialEq>(old: &[T], new: &[T]) -> (Vec<T>, usize) {
    let mut rest: Vec<&T> = old.iter().collect();
    let mut added = Vec::new();
    for item in new {
        match rest.iter().position(|known| *known == item) {
            Some(at) => {
                rest.swap_remove(at);
            }
            None => added.push(item.clone()),
        }
    }
    (added, rest.len())
}

impl LookChanges {
    /// Returns whether nothing would be carried over. Something may be left out all the same.
    pub fn is_empty(&self) -> bool {
        self.sheets.iter().all(SheetLookChanges::carries_nothing)
    }

    /// Returns what changed in a sheet.
    pub fn of(&self, sheet: &str) -> Option<&SheetLookChanges> {
        self.sheets.iter().find(|changes| changes.sheet == sheet)
    }

    /// Returns what is carried over, a line each, as text for the person.
    pub fn lines(&self) -> Vec<String> {
        self.sheets
            .iter()
            .flat_map(SheetLookChanges::lines)
            .collect()
    }

    /// Returns what is not carried over, a line per sheet, as text for the person.
    pub fn left_out(&self) -> Vec<String> {
        let some = self
            .sheets
            .iter()
            .filter(|sheet| !sheet.left_out.is_empty());
        some.map(|sheet| {
            let mut shown: Vec<_> = sheet.left_out.iter().take(LEFT_OUT_MAX).cloned().collect();
            if sheet.left_out.len() > LEFT_OUT_MAX {
                shown.push(format!("{} more", sheet.left_out.len() - LEFT_OUT_MAX));
            }
            format!("{}: {}", sheet.sheet, shown.join(", "))
        })
        .collect()
    }
}

impl SheetLookChanges {
    fn is_empty(&self) -> bool {
        self.carries_nothing() && self.left_out.is_empty()
    }

    pub(crate) fn carries_nothing(&self) -> bool {
        self.dresses.is_empty()
            && self.columns.is_empty()
            && self.conditional.is_empty()
            && self.charts.is_empty()
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for chart in &self.charts {
            let cells: Vec<_> = chart.cells.iter().map(String::as_str).collect();
            let of = match cells.is_empty() {
                true => String::new(),
                false => format!(" of {}", summary_line(&cells.join(", "), SHOWN_CHARS)),
            };
            lines.push(format!("{}: {}{of}", self.sheet, chart.about));
        }
        let mut formats: BTreeMap<&NumberFormat, BTreeSet<Place>> = BTreeMap::new();
        for (place, dress) in &self.dresses {
            if let Some(format) = &dress.format {
                formats.entry(format).or_default().insert(*place);
            }
        }
        for (format, places) in &formats {
            let code = summary_line(&format.text(), SHOWN_CHARS);
            let areas = areas(places);
            lines.push(format!("{}: number format of {areas}: {code}", self.sheet));
        }
        type Part = (&'static str, fn(&Dress) -> bool);
        let parts: [Part; 4] = [
            ("font", |dress| dress.font.is_some()),
            ("fill", |dress| dress.fill.is_some()),
            ("border", |dress| dress.border.is_some()),
            ("alignment", |dress| dress.alignment.is_some()),
        ];
        for (what, is_changed) in parts {
            let dresses = self.dresses.iter().filter(|(_, dress)| is_changed(dress));
            let places: BTreeSet<Place> = dresses.map(|(place, _)| *place).collect();
            if !places.is_empty() {
                lines.push(format!("{}: {what} of {}", self.sheet, areas(&places)));
            }
        }
        let (hidden, others): (Vec<_>, Vec<_>) =
            self.columns.iter().partition(|(_, look)| look.is_hidden);
        for (what, columns) in [("hides", hidden), ("width of", others)] {
            if columns.is_empty() {
                continue;
            }
            let names: Vec<_> = columns
                .iter()
                .map(|(column, _)| letters(**column))
                .collect();
            let shown = names[..names.len().min(COLUMNS_SHOWN)].join(", ");
            let more = match names.len() > COLUMNS_SHOWN {
                true => format!(" and {} more", names.len() - COLUMNS_SHOWN),
                false => String::new(),
            };
            lines.push(format!("{}: {what} columns {shown}{more}", self.sheet));
        }
        for conditional in &self.conditional {
            lines.push(format!(
                "{}: conditional format on {} ({})",
                self.sheet,
                summary_line(&conditional.ranges, SHOWN_CHARS),
                rule_text(&conditional.rule)
            ));
        }
        lines
    }
}

/// Returns the type of a rule with its operator and its formulas, such as `cellIs greaterThan: 100`.
fn rule_text(rule: &Element) -> String {
    let names = ["type", "operator"].map(|name| rule.attribute(name).unwrap_or_default());
    let all = rule.all();
    let formulas = all.iter().filter(|element| element.name == "formula");
    let formulas: Vec<_> = formulas.map(|element| element.text.as_str()).collect();
    let what = names.join(" ");
    let text = match formulas.is_empty() {
        true => what,
        false => format!("{}: {}", what.trim_end(), formulas.join(", ")),
    };
    summary_line(&text, SHOWN_CHARS)
}

const COLUMNS_SHOWN: usize = 20;
const LEFT_OUT_MAX: usize = 10;
/// How much of a format code, a formula or a list of ranges is shown.
const SHOWN_CHARS: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_codes_hidden_columns_and_rules() {
        let dress = Dress {
            format: Some(NumberFormat::Code("0.0\n;;;".to_owned())),
            ..Dress::default()
        };
        let look = |is_hidden| ColumnLook {
            width: "9".to_owned(),
            is_hidden,
        };
        let rule =
            r#"<cfRule type="cellIs" operator="greaterThan"><formula>100</formula></cfRule>"#;
        let sheet = SheetLookChanges {
            sheet: "Data".to_owned(),
            dresses: [(Place { row: 1, column: 1 }, dress)].into(),
            columns: [(2, look(true)), (3, look(false))].into(),
            conditional: vec![ConditionalFormat {
                ranges: "A1:A9".to_owned(),
                rule: Element::fragment(rule).unwrap(),
                format: None,
            }],
            ..SheetLookChanges::default()
        };
        assert_eq!(
            sheet.lines(),
            [
                "Data: number format of A1 (1 cell): 0.0 ;;;",
                "Data: hides columns B",
                "Data: width of columns C",
                "Data: conditional format on A1:A9 (cellIs greaterThan: 100)",
            ]
        );
    }
}
