//! XML in pieces: what each is, and the very bytes it was written with, so that what is not changed is copied as it stands.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::BookError;

/// A text, piece by piece.
pub(super) struct Pieces<'a> {
    reader: Reader<&'a [u8]>,
    text: &'a str,
}

/// One piece.
pub(super) struct Piece<'a> {
    pub(super) event: Event<'a>,
    /// As it was written.
    pub(super) raw: &'a str,
}

impl<'a> Pieces<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self {
            reader: Reader::from_str(text),
            text,
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<Piece<'a>>, BookError> {
        let from = self.position();
        let event = self.reader.read_event().map_err(BookError::unreadable)?;
        if let Event::Eof = event {
            return Ok(None);
        }
        let raw = self.text.get(from..self.position());
        let raw = raw.ok_or_else(|| BookError::unreadable("a part is not what it seems to be"))?;
        Ok(Some(Piece { event, raw }))
    }

    /// Everything up to the end of the element that was just begun, as it was written.
    pub(super) fn rest_of(&mut self, name: &str) -> Result<&'a str, BookError> {
        let from = self.position();
        let mut depth = 1;
        while depth > 0 {
            let Some(piece) = self.next()? else {
                return Err(BookError::unreadable(format!("`{name}` has no end")));
            };
            match piece.event {
                Event::Start(start) if start.local_name().as_ref() == name => depth += 1,
                Event::End(end) if end.local_name().as_ref() == name => depth -= 1,
                _ => {}
            }
        }
        Ok(&self.text[from..self.position()])
    }

    fn position(&self) -> usize {
        usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }
}

/// An attribute of an element.
pub(super) fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = element
        .attributes()
        .with_checks(false)
        .flatten()
        .find(|attribute| attribute.key.as_ref() == name)?;
    let value = quick_xml::escape::unescape(&found.value).ok()?;
    Some(value.into_owned())
}

/// Text for an element or an attribute. What XML cannot hold becomes the mark for that.
pub(super) fn escaped(text: &str) -> String {
    let is_legal = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let legal: String = text
        .chars()
        .map(|c| if is_legal(c) { c } else { '\u{fffd}' })
        .collect();
    quick_xml::escape::escape(legal.as_str()).into_owned()
}

/// An element's tag with an attribute set to something else, or added.
pub(super) fn with_attribute(
    raw: &str,
    element: &BytesStart<'_>,
    name: &str,
    value: &str,
) -> String {
    let found = element
        .attributes()
        .with_checks(false)
        .flatten()
        .find(|attribute| attribute.key.as_ref() == name);
    let value = escaped(value);
    if let Some(found) = found {
        for quote in ['"', '\''] {
            let old = format!(" {name}={quote}{}{quote}", found.value);
            if raw.contains(&old) {
                return raw.replacen(&old, &format!(" {name}=\"{value}\""), 1);
            }
        }
    }
    let end = if raw.ends_with("/>") {
        raw.len() - 2
    } else {
        raw.len() - 1
    };
    format!(
        "{} {name}=\"{value}\"{}",
        raw[..end].trim_end(),
        &raw[end..]
    )
}
