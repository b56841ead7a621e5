//! Relationships between the parts of a package.

use super::super::BookError;
use super::super::tree::RELATIONS;
use super::super::xml::escaped;
use super::parts::Parts;
use super::workbook::append;

/// Returns the name of the part that lists the relationships of a part.
pub(in super::super) fn relations_of(part: &str) -> String {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    match folder.is_empty() {
        true => format!("_rels/{name}.rels"),
        false => format!("{folder}/_rels/{name}.rels"),
    }
}

/// Returns the name of the part that a relationship of `part` targets.
pub(in super::super) fn resolve(part: &str, target: &str) -> String {
    if let Some(whole) = target.strip_prefix('/') {
        return whole.to_owned();
    }
    let folder = part.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut path: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in target.split('/') {
        match name {
            "." | "" => {}
            ".." => {
                path.pop();
            }
            name => path.push(name),
        }
    }
    path.join("/")
}

/// Adds a relationship from one part to another, and returns its id.
pub(super) fn relate(
    parts: &mut Parts<'_>,
    part: &str,
    kind: &str,
    target: &str,
) -> Result<String, BookError> {
    let name = relations_of(part);
    let text = parts.text(&name)?.unwrap_or_else(|| {
        format!(r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?><Relationships xmlns="{PACKAGE}"></Relationships>"#)
    });
    let id = (1..)
        .map(|number| format!("rIdArchie{number}"))
        .find(|id| !text.contains(&format!("\"{id}\"")))
        .unwrap_or_default();
    let relation = format!(
        r#"<Relationship Id="{id}" Type="{RELATIONS}/{kind}" Target="/{}"/>"#,
        escaped(target)
    );
    parts.put(&name, append(&text, "Relationships", &relation)?);
    Ok(id)
}

const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006/relationships";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_resolved_against_their_part() {
        let sheet = "xl/worksheets/sheet1.xml";
        assert_eq!(relations_of(sheet), "xl/worksheets/_rels/sheet1.xml.rels");
        assert_eq!(
            resolve(sheet, "../drawings/drawing1.xml"),
            "xl/drawings/drawing1.xml"
        );
        assert_eq!(
            resolve(sheet, "/xl/charts/chart1.xml"),
            "xl/charts/chart1.xml"
        );
        assert_eq!(resolve(sheet, "../../../../etc/x"), "etc/x");
    }
}
