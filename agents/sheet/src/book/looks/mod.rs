//! Everything in a workbook that is not the content of a cell: formats, column widths, conditional formats and charts.
//!
//! The interpreter's workbook is hostile, because untrusted code wrote it. Nothing of it is copied into the person's file: what
//! is carried over is parsed, compared with the workbook before, and rebuilt from lists of known elements. Macros, links,
//! embedded objects and whatever else is not on a list never reach the file, and are named to the person instead.

mod allowed;
mod changes;
mod charts;
mod sheet;
mod styles;

use super::BookError;
use super::guard;
use super::patch::parts::Parts;
use super::patch::workbook::Workbook;
use super::tree::Element;
pub use changes::{LookChanges, SheetLookChanges};
use charts::CHARTS_MAX;
pub(crate) use charts::{Anchor, Chart, Corner};
use sheet::SheetLooks;
pub(crate) use sheet::{ColumnLook, ConditionalFormat};
use styles::StyleSheet;

/// The looks of a workbook.
#[derive(Debug, Clone, Default)]
pub struct Looks {
    sheets: Vec<SheetLooks>,
}

impl Looks {
    /// Reads the looks of a workbook.
    pub fn read(package: &[u8]) -> Result<Self, BookError> {
        guard::look(package)?;
        let mut parts = Parts::open(package)?;
        let workbook = Workbook::read(&mut parts)?;
        let styles = match parts.text(&workbook.styles)? {
            Some(text) => StyleSheet::read(&text)?,
            None => StyleSheet::default(),
        };
        let mut looks = Self::default();
        let mut charts_room = CHARTS_MAX;
        for (name, part) in workbook.sheets() {
            let sheet = SheetLooks::read(name, part, &styles, &mut parts, &mut charts_room)?;
            looks.sheets.push(sheet);
        }
        Ok(looks)
    }

    fn sheet(&self, name: &str) -> Option<&SheetLooks> {
        self.sheets.iter().find(|sheet| sheet.name == name)
    }
}
