//! Writes JSON as `serde_json` does, byte for byte; in the same pass it refuses what JSON would silently turn into `null`, and
//! collects the labels of labeled values.
//!
//! `serde_json` writes numbers that are not finite as `null`, which an `Option<f64>` reads back as `None`: a lost value that no
//! decoder can notice. And once a value is JSON, a labeled value looks like a user's struct with the same fields. So both have
//! to happen while the value is walked, and one walk does all three.
//!
//! Most of what is stored is text that needs no escapes, so text is scanned in blocks, which compilers turn into vector
//! instructions. What is rare (floats, large integers, keys that are not text) is left to `serde_json` itself.

use std::fmt;

use serde::Serialize;
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use crate::error::ValueError;
use crate::label::{Floor, LABELED, LABELS, Labels};

/// What to do with a number that is not finite.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NotFinite {
    Refuse,
    /// Writes `null`, for a value that was decoded before and so has none.
    WriteNull,
}

/// Appends a value as JSON, and returns the labels that every labeled value inside has.
pub(super) fn write<T: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    value: &T,
    not_finite: NotFinite,
) -> Result<Floor, ValueError> {
    let mut writer = Writer {
        out,
        not_finite,
        bytes_max: usize::MAX,
        floor: Floor::default(),
    };
    match value.serialize(&mut writer) {
        Ok(()) => Ok(writer.floor),
        Err(Fault::NotFinite) => Err(ValueError::NotFinite),
        Err(Fault::TooLong) => unreachable!("there is no limit"),
        Err(Fault::Custom(text)) => Err(ValueError::Encode {
            source: text.into(),
        }),
    }
}

/// Appends a value as JSON, and returns whether `out` is at most this long then. Stops as soon as it would be longer, so that
/// a large value costs no more than a small one.
pub(super) fn write_short<T: Serialize + ?Sized>(
    out: &mut Vec<u8>,
    value: &T,
    bytes_max: usize,
) -> bool {
    let mut writer = Writer {
        out,
        not_finite: NotFinite::WriteNull,
        bytes_max,
        floor: Floor::default(),
    };
    value.serialize(&mut writer).is_ok() && out.len() <= bytes_max
}

struct Writer<'o> {
    out: &'o mut Vec<u8>,
    not_finite: NotFinite,
    /// Length of `out` at which writing stops. Compared before each text and each item of a list or object, so `out` may end a
    /// little longer.
    bytes_max: usize,
    floor: Floor,
}

#[derive(Debug)]
enum Fault {
    NotFinite,
    TooLong,
    Custom(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NotFinite => f.write_str("not a finite number"),
            Fault::TooLong => f.write_str("too long"),
            Fault::Custom(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Fault {}

impl serde::ser::Error for Fault {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Fault::Custom(text.to_string())
    }
}

impl<'o> Writer<'o> {
    fn check_length(&self, more: usize) -> Result<(), Fault> {
        match self.out.len().saturating_add(more) > self.bytes_max {
            true => Err(Fault::TooLong),
            false => Ok(()),
        }
    }

    fn text(&mut self, text: &str) -> Result<(), Fault> {
        self.check_length(text.len())?;
        write_text(self.out, text);
        Ok(())
    }

    fn float<T: Serialize>(&mut self, number: T, is_finite: bool) -> Result<(), Fault> {
        match is_finite || self.not_finite == NotFinite::WriteNull {
            true => self.leave_to_serde_json(&number),
            false => Err(Fault::NotFinite),
        }
    }

    fn leave_to_serde_json<T: Serialize>(&mut self, value: &T) -> Result<(), Fault> {
        serde_json::to_writer(&mut *self.out, value).map_err(Fault::custom)
    }

    fn open<'w>(&'w mut self, bracket: u8, close: &'static [u8]) -> Compound<'w, 'o> {
        self.out.push(bracket);
        Compound {
            writer: self,
            is_first: true,
            kind: CompoundKind::Plain,
            close,
        }
    }

    fn open_variant(&mut self, name: &str) {
        self.out.push(b'{');
        write_text(self.out, name);
        self.out.push(b':');
    }

    /// Only labeled values come here, so only programs that use them pay for it.
    fn take_labels<T: ?Sized + Serialize>(&mut self, labels: &T) -> Result<(), Fault> {
        let labels = serde_json::to_value(labels).and_then(serde_json::from_value::<Labels>);
        self.floor.lower_to(&labels.map_err(Fault::custom)?);
        Ok(())
    }
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let plain = plain_prefix(bytes);
    out.extend_from_slice(&bytes[..plain]);
    if plain < bytes.len() {
        write_escaped(out, &bytes[plain..]);
    }
    out.push(b'"');
}

const fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Returns the length of a prefix that needs no escape. The byte after it need not need one.
fn plain_prefix(bytes: &[u8]) -> usize {
    let (blocks, rest) = bytes.as_chunks::<32>();
    // Without a branch per byte, so that a block takes a few vector instructions.
    let is_plain = |block: &&[u8; 32]| !block.iter().fold(false, |any, b| any | needs_escape(*b));
    let plain = blocks.iter().take_while(is_plain).count();
    if plain < blocks.len() {
        return plain * 32;
    }
    plain * 32 + rest.iter().take_while(|b| !needs_escape(**b)).count()
}

#[cold]
fn write_escaped(out: &mut Vec<u8>, mut bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    loop {
        let plain = bytes.iter().position(|byte| needs_escape(*byte));
        let (before, from) = bytes.split_at(plain.unwrap_or(bytes.len()));
        out.extend_from_slice(before);
        let Some((&byte, after)) = from.split_first() else {
            return;
        };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            control => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(control >> 4)]);
                out.push(HEX[usize::from(control & 15)]);
            }
        }
        bytes = after;
    }
}

fn write_unsigned(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn write_signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    write_unsigned(out, number.unsigned_abs());
}

/// A list or object that is being written.
struct Compound<'w, 'o> {
    writer: &'w mut Writer<'o>,
    is_first: bool,
    kind: CompoundKind,
    close: &'static [u8],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CompoundKind {
    Plain,
    /// Its fields are those of a labeled value.
    Labeled,
    /// Not an object: a number or a piece of JSON that `serde_json` passes as the text in its only field.
    Raw,
}

impl Compound<'_, '_> {
    fn begin_item(&mut self) -> Result<(), Fault> {
        self.writer.check_length(0)?;
        if !std::mem::replace(&mut self.is_first, false) {
            self.writer.out.push(b',');
        }
        Ok(())
    }

    fn write_item<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Fault> {
        self.begin_item()?;
        value.serialize(&mut *self.writer)
    }

    fn write_named<T: ?Sized + Serialize>(&mut self, name: &str, value: &T) -> Result<(), Fault> {
        self.begin_item()?;
        write_text(self.writer.out, name);
        self.writer.out.push(b':');
        value.serialize(&mut *self.writer)
    }

    fn write_raw<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Fault> {
        match serde_json::to_value(value).map_err(Fault::custom)? {
            serde_json::Value::String(text) => {
                self.writer.check_length(text.len())?;
                self.writer.out.extend_from_slice(text.as_bytes());
                Ok(())
            }
            _ => Err(Fault::custom("a raw value is not text")),
        }
    }

    fn finish(self) {
        self.writer.out.extend_from_slice(self.close);
    }
}

/// A map with this key alone, so that `serde_json` decides how a key that is not text is written.
struct OnlyKey<'a, K: ?Sized>(&'a K);

impl<K: ?Sized + Serialize> Serialize for OnlyKey<'_, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.0, &())?;
        map.end()
    }
}

/// How `serde_json` names the structs that hold its numbers and raw values, in programs that enable those features.
const SERDE_JSON_STRUCTS: &str = "$serde_json::private::";

macro_rules! integers {
    ($($method:ident: $ty:ty => $write:ident),* $(,)?) => {
        $(fn $method(self, number: $ty) -> Result<(), Fault> {
            $write(self.out, number.into());
            Ok(())
        })*
    };
}

impl<'w, 'o> Serializer for &'w mut Writer<'o> {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Compound<'w, 'o>;
    type SerializeTuple = Compound<'w, 'o>;
    type SerializeTupleStruct = Compound<'w, 'o>;
    type SerializeTupleVariant = Compound<'w, 'o>;
    type SerializeMap = Compound<'w, 'o>;
    type SerializeStruct = Compound<'w, 'o>;
    type SerializeStructVariant = Compound<'w, 'o>;

    integers! {
        serialize_i8: i8 => write_signed, serialize_i16: i16 => write_signed,
        serialize_i32: i32 => write_signed, serialize_i64: i64 => write_signed,
        serialize_u8: u8 => write_unsigned, serialize_u16: u16 => write_unsigned,
        serialize_u32: u32 => write_unsigned, serialize_u64: u64 => write_unsigned,
    }

    fn serialize_i128(self, number: i128) -> Result<(), Fault> {
        self.leave_to_serde_json(&number)
    }
    fn serialize_u128(self, number: u128) -> Result<(), Fault> {
        self.leave_to_serde_json(&number)
    }
    fn serialize_f32(self, number: f32) -> Result<(), Fault> {
        self.float(number, number.is_finite())
    }
    fn serialize_f64(self, number: f64) -> Result<(), Fault> {
        self.float(number, number.is_finite())
    }
    fn serialize_bool(self, is_true: bool) -> Result<(), Fault> {
        let text: &[u8] = if is_true { b"true" } else { b"false" };
        self.out.extend_from_slice(text);
        Ok(())
    }
    fn serialize_char(self, character: char) -> Result<(), Fault> {
        self.text(character.encode_utf8(&mut [0; 4]))
    }
    fn serialize_str(self, text: &str) -> Result<(), Fault> {
        self.text(text)
    }
    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Fault> {
        let mut list = self.open(b'[', b"]");
        bytes.iter().try_for_each(|byte| list.write_item(byte))?;
        list.finish();
        Ok(())
    }
    fn serialize_none(self) -> Result<(), Fault> {
        self.serialize_unit()
    }
    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), Fault> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<(), Fault> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Fault> {
        self.serialize_unit()
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Fault> {
        self.text(variant)
    }
    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        self.open_variant(variant);
        value.serialize(&mut *self)?;
        self.out.push(b'}');
        Ok(())
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'w, 'o>, Fault> {
        Ok(self.open(b'[', b"]"))
    }
    fn serialize_tuple(self, _: usize) -> Result<Compound<'w, 'o>, Fault> {
        Ok(self.open(b'[', b"]"))
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'w, 'o>, Fault> {
        Ok(self.open(b'[', b"]"))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'w, 'o>, Fault> {
        self.open_variant(variant);
        Ok(self.open(b'[', b"]}"))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'w, 'o>, Fault> {
        Ok(self.open(b'{', b"}"))
    }
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Compound<'w, 'o>, Fault> {
        if name.starts_with(SERDE_JSON_STRUCTS) {
            return Ok(Compound {
                writer: self,
                is_first: true,
                kind: CompoundKind::Raw,
                close: b"",
            });
        }
        let mut object = self.open(b'{', b"}");
        if name == LABELED {
            object.kind = CompoundKind::Labeled;
        }
        Ok(object)
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'w, 'o>, Fault> {
        self.open_variant(variant);
        Ok(self.open(b'{', b"}}"))
    }
}

macro_rules! items {
    ($($which:ident::$method:ident),* $(,)?) => {
        $(impl $which for Compound<'_, '_> {
            type Ok = ();
            type Error = Fault;
            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Fault> {
                self.write_item(value)
            }
            fn end(self) -> Result<(), Fault> {
                self.finish();
                Ok(())
            }
        })*
    };
}

items! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
}

impl SerializeMap for Compound<'_, '_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Fault> {
        self.begin_item()?;
        let begin = self.writer.out.len();
        let written = key.serialize(&mut *self.writer);
        written.map_err(|fault| match fault {
            Fault::NotFinite => Fault::custom("a map key is not a finite number"),
            other => other,
        })?;
        if self.writer.out.get(begin) != Some(&b'"') {
            // `serde_json` quotes numbers and truth values, and refuses the rest.
            self.writer.out.truncate(begin);
            let map = serde_json::to_vec(&OnlyKey(key)).map_err(Fault::custom)?;
            let key = map
                .strip_prefix(b"{")
                .and_then(|rest| rest.strip_suffix(b":null}"));
            let key = key.ok_or_else(|| Fault::custom("a map key cannot be written"))?;
            self.writer.out.extend_from_slice(key);
        }
        self.writer.out.push(b':');
        Ok(())
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Fault> {
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Result<(), Fault> {
        self.finish();
        Ok(())
    }
}

impl SerializeStruct for Compound<'_, '_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        match self.kind {
            CompoundKind::Plain => {}
            CompoundKind::Labeled if name == LABELS => self.writer.take_labels(value)?,
            CompoundKind::Labeled => {}
            CompoundKind::Raw => return self.write_raw(value),
        }
        self.write_named(name, value)
    }

    fn end(self) -> Result<(), Fault> {
        self.finish();
        Ok(())
    }
}

impl SerializeStructVariant for Compound<'_, '_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        self.write_named(name, value)
    }

    fn end(self) -> Result<(), Fault> {
        self.finish();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn written<T: Serialize + ?Sized>(value: &T) -> Result<String, ValueError> {
        let mut out = Vec::new();
        write(&mut out, value, NotFinite::Refuse)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[track_caller]
    fn same_as_serde_json<T: Serialize + ?Sized>(value: &T) {
        assert_eq!(
            written(value).unwrap(),
            serde_json::to_string(value).unwrap()
        );
    }

    #[derive(Serialize)]
    struct Unit;

    #[derive(Serialize)]
    struct Pair(u8, &'static str);

    #[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
    struct Key(Option<&'static str>);

    #[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
    enum Kinds {
        Unit,
        Newtype(u8),
        Tuple(i64, String),
        Struct { a: Option<bool>, b: () },
    }

    #[test]
    fn text_is_escaped_as_by_serde_json_wherever_the_escape_is() {
        let special =
            (0..=0x20).chain([0x22, 0x2f, 0x5c, 0x7f, 0x80, 0xe9, 0x20ac, 0x2028, 0x1f600]);
        for character in special.filter_map(char::from_u32) {
            for len in [1, 2, 31, 32, 33, 64, 65, 100] {
                for at in [0, 1, 15, 30, 31, 32, 33, 63, 64, 98, 99] {
                    let mut text = vec!['a'; len];
                    text[at % len] = character;
                    text[(at * 7 + 3) % len] = character;
                    same_as_serde_json(&text.iter().collect::<String>());
                }
            }
            same_as_serde_json(&character);
        }
        same_as_serde_json("");
    }

    #[test]
    fn every_kind_of_value_is_written_as_by_serde_json() {
        same_as_serde_json(&[i64::MIN, -1, 0, 9, 10, i64::MAX]);
        same_as_serde_json(&(
            u64::MAX,
            u128::MAX,
            i128::MIN,
            i8::MIN,
            u8::MAX,
            -32768_i16,
            7_u32,
        ));
        same_as_serde_json(&[0.0, -0.0, 1.0, 0.1, 1e300, f64::MIN_POSITIVE, 1e15, 1e16]);
        same_as_serde_json(&[0.1_f32, f32::MAX, 16_777_216.0]);
        same_as_serde_json(&(Unit, Pair(1, "\""), (), Some(()), None::<u8>, true));
        let kinds = [
            Kinds::Unit,
            Kinds::Newtype(3),
            Kinds::Tuple(-4, "x\n".to_owned()),
            Kinds::Struct { a: None, b: () },
        ];
        same_as_serde_json(&kinds);
        same_as_serde_json(&json!({"a": [1, -2, 1.5, null, {"b\n": {}}, []], "": u64::MAX}));
    }

    #[test]
    fn map_keys_are_written_or_refused_as_by_serde_json() {
        same_as_serde_json(&BTreeMap::from([("a\"", 1), ("", 2)]));
        same_as_serde_json(&BTreeMap::from([(-1_i64, 'x'), (2, '"')]));
        same_as_serde_json(&BTreeMap::from([(true, 1), (false, 2)]));
        same_as_serde_json(&BTreeMap::from([(u128::MAX, 1)]));
        same_as_serde_json(&BTreeMap::from([('\\', 1)]));
        same_as_serde_json(&BTreeMap::from([(Kinds::Unit, 1)]));
        same_as_serde_json(&BTreeMap::from([(Key(Some("k")), 1)]));
        let refused: [&dyn Fn() -> Result<String, ValueError>; 4] = [
            &|| written(&BTreeMap::from([(Key(None), 1)])),
            &|| written(&BTreeMap::from([(Kinds::Newtype(1), 1)])),
            &|| written(&BTreeMap::from([((1, 2), 1)])),
            &|| written(&BTreeMap::from([((), 1)])),
        ];
        for written in refused {
            let error = written().unwrap_err();
            assert!(matches!(error, ValueError::Encode { .. }), "{error:?}");
        }
    }

    #[test]
    fn numbers_and_raw_json_that_serde_json_passes_as_text_are_written_as_they_are() {
        struct Number(&'static str);
        impl Serialize for Number {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let name = "$serde_json::private::Number";
                let mut number = serializer.serialize_struct(name, 1)?;
                number.serialize_field(name, self.0)?;
                number.end()
            }
        }
        let numbers = [Number("1.50"), Number("123456789012345678901234567890")];
        let expected = "[1.50,123456789012345678901234567890]";
        assert_eq!(written(&numbers).unwrap(), expected);
    }

    #[test]
    fn a_short_value_is_written_up_to_its_limit_and_a_longer_one_is_not() {
        let is_short = |value: &[&str], bytes_max| {
            let mut out = Vec::new();
            let is_short = write_short(&mut out, value, bytes_max);
            assert!(out.len() <= bytes_max + 4, "{}", out.len());
            is_short
        };
        assert!(is_short(&["abc", "de"], 12));
        assert!(!is_short(&["abc", "de"], 11));
        assert!(!is_short(&["a\n", "de"], 11));
        assert!(!is_short(&["abc"; 100], 50));
        let long = "x".repeat(1000);
        assert!(!is_short(&["abc", &long], 50));
    }
}
