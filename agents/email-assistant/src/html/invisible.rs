//! Characters that nobody sees, by what Unicode says of them.

use icu_properties::props::{
    DefaultIgnorableCodePoint, GeneralCategory, PrependedConcatenationMark,
};
use icu_properties::{CodePointMapData, CodePointSetData};

/// Whether a character takes no room or only steers others: controls but for tab and line end, format characters, whatever
/// Unicode calls ignorable (variation selectors, tags, fillers), private ones, and the blank of Braille.
///
/// Emoji that are made of several lose what joins them and stay readable.
pub fn is_invisible(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && !matches!(c, '\n' | '\r' | '\t');
    }
    match CodePointMapData::<GeneralCategory>::new().get(c) {
        GeneralCategory::Control
        | GeneralCategory::LineSeparator
        | GeneralCategory::ParagraphSeparator
        | GeneralCategory::PrivateUse => true,
        // Signs around Arabic numbers are format characters, too, and can be seen.
        GeneralCategory::Format => {
            !CodePointSetData::new::<PrependedConcatenationMark>().contains(c)
        }
        _ => c == BRAILLE_BLANK || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c),
    }
}

/// A space of any width becomes a plain one.
pub(super) fn is_odd_space(c: char) -> bool {
    !c.is_ascii()
        && CodePointMapData::<GeneralCategory>::new().get(c) == GeneralCategory::SpaceSeparator
}

const BRAILLE_BLANK: char = '\u{2800}';
