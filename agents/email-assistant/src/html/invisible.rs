//! Detects invisible characters by their Unicode properties.

use icu_properties::props::{
    DefaultIgnorableCodePoint, GeneralCategory, PrependedConcatenationMark,
};
use icu_properties::{CodePointMapData, CodePointSetData};

/// Returns whether a character has no width or only affects others: controls except tab and line breaks, format characters,
/// line and paragraph separators, characters that Unicode calls ignorable (variation selectors, tags, fillers), private-use
/// characters, and the Braille blank.
///
/// Composed emoji lose their joiners and stay readable.
pub fn is_invisible(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && !matches!(c, '\n' | '\r' | '\t');
    }
    match CodePointMapData::<GeneralCategory>::new().get(c) {
        GeneralCategory::Control
        | GeneralCategory::LineSeparator
        | GeneralCategory::ParagraphSeparator
        | GeneralCategory::PrivateUse => true,
        // Signs that enclose Arabic numbers are format characters too, but visible.
        GeneralCategory::Format => {
            !CodePointSetData::new::<PrependedConcatenationMark>().contains(c)
        }
        _ => c == BRAILLE_BLANK || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c),
    }
}

/// Returns whether a character is a non-ASCII space of any width, which the caller replaces with a plain one.
pub(super) fn is_odd_space(c: char) -> bool {
    !c.is_ascii()
        && CodePointMapData::<GeneralCategory>::new().get(c) == GeneralCategory::SpaceSeparator
}

const BRAILLE_BLANK: char = '\u{2800}';
