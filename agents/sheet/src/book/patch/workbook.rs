//! The parts of a package that refer to the other parts: workbook, relationships and content types.

use std::collections::BTreeMap;

use quick_xml::events::{BytesStart, Event};

use super::super::BookError;
use super::super::xml::{Pieces, attribute, escaped, with_attribute};
use super::parts::Parts;

/// The workbook part, with its relationships and the content types of the package.
pub(in super::super) struct Workbook {
    part: String,
    text: String,
    relations_part: String,
    relations: String,
    types: String,
    pub(in super::super) styles: String,
    /// Sheet names and the names of their parts.
    sheets: Vec<(String, String)>,
    pub(super) is_1904: bool,
}

impl Workbook {
    pub(in super::super) fn read(parts: &mut Parts<'_>) -> Result<Self, BookError> {
        let missing = |name: &str| BookError::unreadable(format!("`{name}` is missing"));
        let part = "xl/workbook.xml".to_owned();
        let relations_part = "xl/_rels/workbook.xml.rels".to_owned();
        let text = parts.text(&part)?.ok_or_else(|| missing(&part))?;
        let relations = parts
            .text(&relations_part)?
            .ok_or_else(|| missing(&relations_part))?;
        let types = parts.text(TYPES)?.ok_or_else(|| missing(TYPES))?;
        let targets = targets(&relations)?;
        let styles = targets
            .values()
            .find(|(kind, _)| kind.ends_with("/styles"))
            .map(|(_, part)| part.clone());
        let mut sheets = Vec::new();
        let mut is_1904 = false;
        let mut pieces = Pieces::of(&text);
        while let Some(piece) = pieces.next()? {
            if let Event::Start(element) | Event::Empty(element) = &piece.event {
                match element.local_name().as_ref() {
                    "sheet" => {
                        let id = element
                            .attributes()
                            .with_checks(false)
                            .flatten()
                            .find(|attribute| attribute.key.local_name().as_ref() == "id");
                        let target = id.and_then(|id| targets.get(id.value.as_ref()));
                        sheets.extend(
                            attribute(element, "name").zip(target.map(|(_, part)| part.clone())),
                        );
                    }
                    "workbookPr" => {
                        is_1904 = matches!(
                            attribute(element, "date1904").as_deref(),
                            Some("1" | "true")
                        )
                    }
                    _ => {}
                }
            }
        }
        Ok(Self {
            part,
            text,
            relations_part,
            relations,
            types,
            styles: styles.unwrap_or_default(),
            sheets,
            is_1904,
        })
    }

    pub(super) fn part_of(&self, sheet: &str) -> Result<String, BookError> {
        let found = self.sheets.iter().find(|(name, _)| name == sheet);
        let found =
            found.ok_or_else(|| BookError::unwritable(format!("there is no sheet `{sheet}`")))?;
        Ok(found.1.clone())
    }

    /// Returns the names of the sheets and of their parts.
    pub(in super::super) fn sheets(&self) -> &[(String, String)] {
        &self.sheets
    }

    /// Records the content type of a new part.
    pub(super) fn add_type(&mut self, part: &str, kind: &str) -> Result<(), BookError> {
        let entry = format!(r#"<Override PartName="/{part}" ContentType="{kind}"/>"#);
        self.types = append(&self.types, "Types", &entry)?;
        Ok(())
    }

    /// Adds a sheet, and returns the name of its part.
    pub(super) fn add(
        &mut self,
        name: &str,
        sheet: String,
        parts: &mut Parts<'_>,
    ) -> Result<String, BookError> {
        check_name(name)?;
        let number = (1..)
            .find(|number| !parts.has(&format!("xl/worksheets/sheet{number}.xml")))
            .unwrap_or(1);
        let id = (1..)
            .map(|number| format!("rIdArchie{number}"))
            .find(|id| !self.relations.contains(id.as_str()))
            .unwrap_or_default();
        let sheet_id = highest(&self.text, "sheet", "sheetId")? + 1;
        let entry = format!(
            r#"<sheet xmlns:r="{RELATIONS}" name="{}" sheetId="{sheet_id}" r:id="{id}"/>"#,
            escaped(name)
        );
        self.text = append(&self.text, "sheets", &entry)?;
        let target = format!("worksheets/sheet{number}.xml");
        let relation =
            format!(r#"<Relationship Id="{id}" Type="{RELATIONS}/worksheet" Target="{target}"/>"#);
        self.relations = append(&self.relations, "Relationships", &relation)?;
        let part = format!("xl/{target}");
        self.add_type(&part, SHEET_TYPE)?;
        self.sheets.push((name.to_owned(), part.clone()));
        parts.put(&part, sheet);
        Ok(part)
    }

    /// Removes the list of the order in which formulas are computed. Programs rebuild it when they open the file, but report an
    /// error if it is wrong.
    pub(super) fn drop_calculation_chain(
        &mut self,
        parts: &mut Parts<'_>,
    ) -> Result<(), BookError> {
        let targets = targets(&self.relations)?;
        let found = targets
            .into_values()
            .find(|(kind, _)| kind.ends_with("/calcChain"));
        if let Some((_, part)) = found {
            parts.remove(&part);
            let is_it = |element: &BytesStart<'_>| {
                attribute(element, "Type").is_some_and(|kind| kind.ends_with("/calcChain"))
            };
            self.relations = without(&self.relations, is_it)?;
            let name = format!("/{part}");
            self.types = without(&self.types, |element| {
                attribute(element, "PartName").as_deref() == Some(name.as_str())
            })?;
        }
        Ok(())
    }

    pub(super) fn compute_when_opened(&mut self) {
        let mut pieces = Pieces::of(&self.text);
        let mut out = String::new();
        let mut is_set = false;
        while let Ok(Some(piece)) = pieces.next() {
            match &piece.event {
                Event::Start(element) | Event::Empty(element)
                    if element.local_name().as_ref() == "calcPr" =>
                {
                    out.push_str(&with_attribute(piece.raw, element, "fullCalcOnLoad", "1"));
                    is_set = true;
                }
                _ => out.push_str(piece.raw),
            }
        }
        if is_set {
            self.text = out;
        }
    }

    pub(super) fn write(self, parts: &mut Parts<'_>) -> Result<(), BookError> {
        parts.put(&self.part, self.text);
        parts.put(&self.relations_part, self.relations);
        parts.put(TYPES, self.types);
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), BookError> {
    let is_fine = (1..=31).contains(&name.chars().count())
        && !name.contains(['[', ']', ':', '*', '?', '/', '\\']);
    match is_fine {
        true => Ok(()),
        false => Err(BookError::unwritable(format!(
            "`{name}` cannot be the name of a sheet"
        ))),
    }
}

fn targets(relations: &str) -> Result<BTreeMap<String, (String, String)>, BookError> {
    let mut found = BTreeMap::new();
    let mut pieces = Pieces::of(relations);
    while let Some(piece) = pieces.next()? {
        if let Event::Start(element) | Event::Empty(element) = &piece.event
            && element.local_name().as_ref() == "Relationship"
            && let (Some(id), Some(kind), Some(target)) = (
                attribute(element, "Id"),
                attribute(element, "Type"),
                attribute(element, "Target"),
            )
        {
            let part = match target.strip_prefix('/') {
                Some(whole) => whole.to_owned(),
                None => format!("xl/{target}"),
            };
            found.insert(id, (kind, part));
        }
    }
    Ok(found)
}

pub(super) fn highest(text: &str, element: &str, name: &str) -> Result<u32, BookError> {
    let mut highest = 0;
    let mut pieces = Pieces::of(text);
    while let Some(piece) = pieces.next()? {
        if let Event::Start(found) | Event::Empty(found) = &piece.event
            && found.local_name().as_ref() == element
        {
            highest = highest.max(
                attribute(found, name)
                    .and_then(|number| number.parse().ok())
                    .unwrap_or_default(),
            );
        }
    }
    Ok(highest)
}

/// Appends an item to the end of an element.
pub(super) fn append(text: &str, element: &str, item: &str) -> Result<String, BookError> {
    let mut out = String::with_capacity(text.len() + item.len());
    let mut pieces = Pieces::of(text);
    while let Some(piece) = pieces.next()? {
        match &piece.event {
            Event::End(end) if end.local_name().as_ref() == element => out.push_str(item),
            Event::Empty(empty) if empty.local_name().as_ref() == element => {
                let open = piece.raw.trim_end_matches("/>").trim_end();
                let name = empty.name().as_ref().to_owned();
                out.push_str(&format!("{open}>{item}</{name}>"));
                continue;
            }
            _ => {}
        }
        out.push_str(piece.raw);
    }
    Ok(out)
}

/// Removes empty elements that match.
fn without(text: &str, is_it: impl Fn(&BytesStart<'_>) -> bool) -> Result<String, BookError> {
    let mut out = String::with_capacity(text.len());
    let mut pieces = Pieces::of(text);
    while let Some(piece) = pieces.next()? {
        match &piece.event {
            Event::Empty(element) if is_it(element) => {}
            _ => out.push_str(piece.raw),
        }
    }
    Ok(out)
}

const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const SHEET_TYPE: &str =
    "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml";
const TYPES: &str = "[Content_Types].xml";
