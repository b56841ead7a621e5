//! Splits XML into events together with their raw text, so that unchanged parts can be copied verbatim.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::BookError;

/// Iterates over the events of an XML text.
pub(super) struct Pieces<'a> {
    reader: Reader<&'a [u8]>,
    text: &'a str,
}

/// One event with its raw text.
pub(super) struct Piece<'a> {
    pub(super) event: Event<'a>,
    /// Raw text of the event.
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

    /// Returns the raw text up to and including the end tag of the element that has just started.
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

/// Returns the value of an attribute, with entities replaced, if the element has it.
pub(super) fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = element
        .attributes()
        .with_checks(false)
        .flatten()
        .find(|attribute| attribute.key.as_ref() == name)?;
    let value = quick_xml::escape::unescape(&found.value).ok()?;
    Some(value.into_owned())
}

/// Escapes text for an element or an attribute. Characters that are not legal in XML become `U+FFFD`.
pub(super) fn escaped(text: &str) -> String {
    let is_legal = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let legal: String = text
        .chars()
        .map(|c| if is_legal(c) { c } else { '\u{fffd}' })
        .collect();
    quick_xml::escape::escape(legal.as_str()).into_owned()
}

/// Returns an element's tag with an attribute replaced or added.
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
