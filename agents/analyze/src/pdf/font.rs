//! Fonts: which characters the codes of a text are, and how wide they are.

use std::collections::BTreeMap;

use super::PdfFault;
use super::file::{PdfFile, get, name, number};
use super::object::{Dict, Object, Parser};

/// What a text in a font needs.
#[derive(Debug, Default)]
pub(super) struct Font {
    /// Whether a code has two bytes.
    is_wide: bool,
    /// Characters in UTF-16, by the first and last code of a range. A range is never expanded.
    unicode: BTreeMap<u32, (u32, Vec<u16>)>,
    /// Characters that differ from the base encoding.
    differences: BTreeMap<u8, String>,
    base: Base,
    /// Widths in thousandths of the size, by the first and last code of a range.
    widths: BTreeMap<u32, (u32, f64)>,
    default_width: f64,
}

/// Encodings that fonts refer to by name.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Base {
    /// What the font file says. Most have letters and digits where ASCII has them.
    #[default]
    BuiltIn,
    WinAnsi,
    MacRoman,
}

impl Font {
    pub(super) fn read(file: &PdfFile<'_>, dict: &Dict) -> Result<Self, PdfFault> {
        file.spend(FONT_WORK)?;
        let is_wide = name(dict, b"Subtype") == Some(b"Type0");
        let mut font = Self {
            is_wide,
            default_width: if is_wide { 1_000.0 } else { 500.0 },
            ..Self::default()
        };
        if let Some(Object::Reference(map)) = get(dict, b"ToUnicode")
            && let Some((_, map)) = file.stream(*map)?
        {
            font.read_unicode(file, &map)?;
        }
        match is_wide {
            true => font.read_wide_widths(file, dict)?,
            false => {
                font.read_encoding(file, dict)?;
                font.read_widths(file, dict)?;
            }
        }
        Ok(font)
    }

    /// Reads a map of codes to characters.
    fn read_unicode(&mut self, file: &PdfFile<'_>, map: &[u8]) -> Result<(), PdfFault> {
        file.spend(map.len())?;
        if map.len() > MAP_BYTES_MAX {
            return Err(PdfFault::TooMuchWork);
        }
        let mut parser = Parser::new(map, 0);
        let mut operands: Vec<Object> = Vec::new();
        while !parser.is_at_end() {
            let Some(object) = parser.next_object() else {
                parser.jump(parser.at() + 1);
                continue;
            };
            let Object::Word(word) = object else {
                if operands.len() < OPERANDS_MAX {
                    operands.push(object);
                }
                continue;
            };
            match word.as_slice() {
                b"endbfchar" => {
                    for pair in operands.chunks_exact(2) {
                        if let [Object::String(code), Object::String(text)] = pair {
                            self.add_unicode(file, code_of(code), code_of(code), text)?;
                        }
                    }
                }
                b"endbfrange" => {
                    for range in operands.chunks_exact(3) {
                        self.add_range(file, range)?;
                    }
                }
                _ => {}
            }
            operands.clear();
        }
        Ok(())
    }

    fn add_range(&mut self, file: &PdfFile<'_>, range: &[Object]) -> Result<(), PdfFault> {
        let [Object::String(first), Object::String(last), target] = range else {
            return Ok(());
        };
        let (first, last) = (code_of(first), code_of(last));
        match target {
            Object::String(text) => self.add_unicode(file, first, last, text)?,
            Object::Array(texts) => {
                for (code, text) in (first..=last).zip(texts) {
                    if let Object::String(text) = text {
                        self.add_unicode(file, code, code, text)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add_unicode(
        &mut self,
        file: &PdfFile<'_>,
        first: u32,
        last: u32,
        text: &[u8],
    ) -> Result<(), PdfFault> {
        file.add_code()?;
        let units: Vec<u16> = match text {
            [byte] => vec![u16::from(*byte)],
            _ => text
                .chunks_exact(2)
                .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
                .take(UNITS_MAX)
                .collect(),
        };
        self.unicode.insert(first, (last, units));
        Ok(())
    }

    fn read_encoding(&mut self, file: &PdfFile<'_>, dict: &Dict) -> Result<(), PdfFault> {
        let encoding = file.resolve(get(dict, b"Encoding"))?;
        let of_name = |name: Option<&[u8]>| match name {
            Some(b"WinAnsiEncoding") => Base::WinAnsi,
            Some(b"MacRomanEncoding") => Base::MacRoman,
            _ => Base::BuiltIn,
        };
        let Some(encoding) = encoding.as_deref() else {
            return Ok(());
        };
        let Some(dict) = encoding.dict() else {
            self.base = of_name(encoding.name());
            return Ok(());
        };
        self.base = of_name(name(dict, b"BaseEncoding"));
        let differences = file.resolve(get(dict, b"Differences"))?;
        let Some(Object::Array(differences)) = differences.as_deref() else {
            return Ok(());
        };
        file.spend(differences.len())?;
        let mut code = 0_u8;
        for difference in differences {
            match difference {
                Object::Number(next) => code = *next as u8,
                Object::Name(glyph) => {
                    if let Some(text) = glyph_text(glyph) {
                        self.differences.insert(code, text);
                    }
                    code = code.wrapping_add(1);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_widths(&mut self, file: &PdfFile<'_>, dict: &Dict) -> Result<(), PdfFault> {
        // A Type 3 font has a unit of its own.
        if name(dict, b"Subtype") == Some(b"Type3") {
            return Ok(());
        }
        let first = number(dict, b"FirstChar").unwrap_or_default() as u8;
        let widths = file.resolve(get(dict, b"Widths"))?;
        let Some(Object::Array(widths)) = widths.as_deref() else {
            return Ok(());
        };
        for (code, width) in (u32::from(first)..=255).zip(widths) {
            if let Some(width) = width.number() {
                self.widths.insert(code, (code, width));
            }
        }
        Ok(())
    }

    fn read_wide_widths(&mut self, file: &PdfFile<'_>, dict: &Dict) -> Result<(), PdfFault> {
        let descendants = file.resolve(get(dict, b"DescendantFonts"))?;
        let Some(Object::Array(descendants)) = descendants.as_deref() else {
            return Ok(());
        };
        let descendant = file.resolve(descendants.first())?;
        let Some(descendant) = descendant.as_deref().and_then(Object::dict) else {
            return Ok(());
        };
        if let Some(width) = number(descendant, b"DW") {
            self.default_width = width;
        }
        let widths = file.resolve(get(descendant, b"W"))?;
        let Some(Object::Array(widths)) = widths.as_deref() else {
            return Ok(());
        };
        let mut items = widths.iter();
        while let Some(first) = items.next().and_then(Object::number) {
            let first = first as u32;
            match items.next() {
                Some(Object::Array(list)) => {
                    for (code, width) in (first..=u32::MAX).zip(list) {
                        file.add_code()?;
                        let width = width.number().unwrap_or(self.default_width);
                        self.widths.insert(code, (code, width));
                    }
                }
                Some(Object::Number(last)) => {
                    let Some(width) = items.next().and_then(Object::number) else {
                        break;
                    };
                    file.add_code()?;
                    self.widths.insert(first, (*last as u32, width));
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Returns the codes of a string.
    pub(super) fn codes<'s>(&self, string: &'s [u8]) -> impl Iterator<Item = u32> + use<'s> {
        string
            .chunks_exact(if self.is_wide { 2 } else { 1 })
            .map(code_of)
    }

    /// Returns whether a code is the space that word spacing widens.
    pub(super) fn is_space(&self, code: u32) -> bool {
        !self.is_wide && code == 32
    }

    /// Returns the width of a code as a part of the size.
    pub(super) fn width(&self, code: u32) -> f64 {
        let range = self.widths.range(..=code).next_back();
        let width = range.filter(|(_, (last, _))| code <= *last);
        width.map_or(self.default_width, |(_, (_, width))| *width) / 1_000.0
    }

    /// Adds the characters of a code to a text. Adds nothing if they are not known.
    pub(super) fn push_text(&self, code: u32, text: &mut String) {
        let range = self.unicode.range(..=code).next_back();
        if let Some((first, (last, units))) = range
            && code <= *last
        {
            let mut units = units.clone();
            if let Some(unit) = units.last_mut() {
                *unit = unit.wrapping_add((code - first) as u16);
            }
            let chars = char::decode_utf16(units).filter_map(Result::ok);
            chars.for_each(|c| push_char(c, text));
            return;
        }
        if self.is_wide {
            return;
        }
        let code = (code & 0xFF) as u8;
        match self.differences.get(&code) {
            Some(glyph) => glyph.chars().for_each(|c| push_char(c, text)),
            None => {
                if let Some(c) = self.base.char(code) {
                    push_char(c, text);
                }
            }
        }
    }
}

impl Base {
    fn char(self, code: u8) -> Option<char> {
        let upper = |table: &str, first: u8| table.chars().nth(usize::from(code - first));
        match (self, code) {
            // The ligatures of TeX's fonts.
            (Self::BuiltIn, 0x0B..=0x0F) => upper("ﬀﬁﬂﬃﬄ", 0x0B),
            (_, 0x20..=0x7E) => Some(char::from(code)),
            (Self::WinAnsi | Self::BuiltIn, 0x80..=0x9F) => upper(WIN_ANSI, 0x80),
            (Self::MacRoman, 0x80..) => upper(MAC_ROMAN, 0x80),
            (_, 0xA0..) => Some(char::from(code)),
            _ => None,
        }
    }
}

/// Adds a character to a text: a ligature as its letters, so that words can be compared, and nothing that breaks a line.
fn push_char(c: char, text: &mut String) {
    match c {
        'ﬀ' => text.push_str("ff"),
        'ﬁ' => text.push_str("fi"),
        'ﬂ' => text.push_str("fl"),
        'ﬃ' => text.push_str("ffi"),
        'ﬄ' => text.push_str("ffl"),
        '\t' | '\n' | '\r' | '\u{a0}' => text.push(' '),
        // A soft hyphen is only seen where a line breaks.
        '\u{ad}' | '\u{fffd}' => {}
        c if c.is_control() => {}
        c => text.push(c),
    }
}

fn code_of(bytes: &[u8]) -> u32 {
    let bytes = bytes.iter().take(4);
    bytes.fold(0, |code, byte| (code << 8) | u32::from(*byte))
}

/// Returns the characters of a glyph by its name in Adobe's list, or by its number.
fn glyph_text(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    // What follows a dot names a variant of the glyph.
    let name = name.split('.').next().filter(|name| !name.is_empty())?;
    let mut letters = name.chars();
    let first = letters.next()?;
    let rest = letters.as_str();
    if rest.is_empty() {
        return Some(first.to_string());
    }
    if let Some((_, text)) = GLYPHS.iter().find(|(glyph, _)| *glyph == name) {
        return Some((*text).to_owned());
    }
    if let Some((_, pairs)) = ACCENTS.iter().find(|(accent, _)| *accent == rest) {
        let pairs: Vec<char> = pairs.chars().collect();
        let pair = pairs.chunks_exact(2).find(|pair| pair[0] == first);
        return pair.map(|pair| pair[1].to_string());
    }
    let digits = name.strip_prefix("uni").and_then(|digits| digits.get(..4));
    let digits = digits.or_else(|| name.strip_prefix('u'))?;
    let code = u32::from_str_radix(digits, 16).ok()?;
    char::from_u32(code).map(String::from)
}

const WIN_ANSI: &str = "€•‚ƒ„…†‡ˆ‰Š‹Œ•Ž••‘’“”•–—˜™š›œ•žŸ";
const MAC_ROMAN: &str = "ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø¿¡¬√ƒ≈∆«»… ÀÃÕŒœ–—“”‘’÷◊ÿŸ⁄€‹›ﬁﬂ‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ�ÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ";

/// Glyphs whose names are not letters with an accent.
const GLYPHS: &[(&str, &str)] = &[
    ("space", " "),
    ("nbspace", " "),
    ("exclam", "!"),
    ("quotedbl", "\""),
    ("numbersign", "#"),
    ("dollar", "$"),
    ("percent", "%"),
    ("ampersand", "&"),
    ("quotesingle", "'"),
    ("parenleft", "("),
    ("parenright", ")"),
    ("asterisk", "*"),
    ("plus", "+"),
    ("comma", ","),
    ("hyphen", "-"),
    ("period", "."),
    ("slash", "/"),
    ("zero", "0"),
    ("one", "1"),
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("colon", ":"),
    ("semicolon", ";"),
    ("less", "<"),
    ("equal", "="),
    ("greater", ">"),
    ("question", "?"),
    ("at", "@"),
    ("bracketleft", "["),
    ("backslash", "\\"),
    ("bracketright", "]"),
    ("asciicircum", "^"),
    ("underscore", "_"),
    ("grave", "`"),
    ("braceleft", "{"),
    ("bar", "|"),
    ("braceright", "}"),
    ("asciitilde", "~"),
    ("exclamdown", "¡"),
    ("questiondown", "¿"),
    ("cent", "¢"),
    ("sterling", "£"),
    ("yen", "¥"),
    ("Euro", "€"),
    ("currency", "¤"),
    ("brokenbar", "¦"),
    ("section", "§"),
    ("paragraph", "¶"),
    ("copyright", "©"),
    ("registered", "®"),
    ("trademark", "™"),
    ("degree", "°"),
    ("plusminus", "±"),
    ("minus", "−"),
    ("multiply", "×"),
    ("divide", "÷"),
    ("lessequal", "≤"),
    ("greaterequal", "≥"),
    ("notequal", "≠"),
    ("approxequal", "≈"),
    ("infinity", "∞"),
    ("mu", "µ"),
    ("onehalf", "½"),
    ("onequarter", "¼"),
    ("threequarters", "¾"),
    ("onesuperior", "¹"),
    ("twosuperior", "²"),
    ("threesuperior", "³"),
    ("bullet", "•"),
    ("periodcentered", "·"),
    ("ellipsis", "…"),
    ("dagger", "†"),
    ("daggerdbl", "‡"),
    ("endash", "–"),
    ("emdash", "—"),
    ("quoteleft", "‘"),
    ("quoteright", "’"),
    ("quotesinglbase", "‚"),
    ("quotedblleft", "“"),
    ("quotedblright", "”"),
    ("quotedblbase", "„"),
    ("guillemotleft", "«"),
    ("guillemotright", "»"),
    ("guilsinglleft", "‹"),
    ("guilsinglright", "›"),
    ("fraction", "⁄"),
    ("perthousand", "‰"),
    ("ff", "ff"),
    ("fi", "fi"),
    ("fl", "fl"),
    ("ffi", "ffi"),
    ("ffl", "ffl"),
    ("ae", "æ"),
    ("AE", "Æ"),
    ("oe", "œ"),
    ("OE", "Œ"),
    ("oslash", "ø"),
    ("Oslash", "Ø"),
    ("lslash", "ł"),
    ("Lslash", "Ł"),
    ("germandbls", "ß"),
    ("dotlessi", "ı"),
    ("eth", "ð"),
    ("Eth", "Ð"),
    ("thorn", "þ"),
    ("Thorn", "Þ"),
];

/// Accents by their names, each with pairs of a letter and the letter with the accent.
const ACCENTS: &[(&str, &str)] = &[
    ("acute", "aáeéiíoóuúyýAÁEÉIÍOÓUÚYÝcćnńsśzźCĆNŃSŚZŹ"),
    ("grave", "aàeèiìoòuùAÀEÈIÌOÒUÙ"),
    ("circumflex", "aâeêiîoôuûAÂEÊIÎOÔUÛ"),
    ("dieresis", "aäeëiïoöuüyÿAÄEËIÏOÖUÜYŸ"),
    ("tilde", "aãnñoõAÃNÑOÕ"),
    ("ring", "aåuůAÅUŮ"),
    ("cedilla", "cçsşCÇSŞ"),
    ("caron", "cčsšzžrřeěnňCČSŠZŽRŘEĚNŇ"),
    ("ogonek", "aąeęAĄEĘ"),
    ("dotaccent", "zżIİZŻ"),
    ("breve", "aăgğAĂGĞ"),
    ("hungarumlaut", "oőuűOŐUŰ"),
];

/// Work to read a font, besides its parts.
const FONT_WORK: usize = 1_000;
/// Maximum number of UTF-16 units that a code stands for.
const UNITS_MAX: usize = 8;
/// Maximum size of a map: its values take many times as much memory.
const MAP_BYTES_MAX: usize = 2 << 20;
/// Maximum number of values before an operator of a map.
const OPERANDS_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glyphs_have_names_and_numbers() {
        for (name, text) in [
            ("A", "A"),
            ("space", " "),
            ("eacute", "é"),
            ("udieresis", "ü"),
            ("fi", "fi"),
            ("a.sc", "a"),
            ("uni00E9", "é"),
            ("u1F600", "😀"),
        ] {
            assert_eq!(glyph_text(name.as_bytes()).as_deref(), Some(text), "{name}");
        }
        assert_eq!(glyph_text(b".notdef"), None);
        assert_eq!(glyph_text(b"g123"), None);
        assert_eq!(glyph_text(b"uniD800"), None);
    }

    #[test]
    fn the_tables_have_their_lengths() {
        assert_eq!(WIN_ANSI.chars().count(), 32);
        assert_eq!(MAC_ROMAN.chars().count(), 128);
        assert_eq!(Base::WinAnsi.char(0x93), Some('“'));
        assert_eq!(Base::MacRoman.char(0x8A), Some('ä'));
        for (accent, pairs) in ACCENTS {
            assert_eq!(pairs.chars().count() % 2, 0, "{accent}");
        }
    }
}
