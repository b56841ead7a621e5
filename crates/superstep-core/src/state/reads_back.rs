//! Which types read back from their stored form exactly as they were written.
//!
//! A node's update counts as what a reader of its stored form sees, so that a replay on another machine sees the same. For
//! most types only reading it back tells. For a few it is known, and an update of these alone need not be read back: that is
//! most of the cost of a small update.
//!
//! Floats are not among them: `serde_json` may read one back one bit off. Nor is an option of an option, whose `Some(None)`
//! reads back as `None`.

use std::marker::PhantomData;

/// A type whose every value reads back from JSON as it was written, and that JSON can always store.
pub trait ReadsBackExactly {}

/// One of them that is never written as `null`, a list or an object.
pub trait Scalar {}

macro_rules! scalars {
    ($($scalar:ty)*) => {$(
        impl Scalar for $scalar {}
        impl ReadsBackExactly for $scalar {}
    )*};
}

scalars!(bool char String i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

impl<T: Scalar> ReadsBackExactly for Option<T> {}
impl<T: Scalar> ReadsBackExactly for Option<Vec<T>> {}
impl<T: Scalar> ReadsBackExactly for Vec<T> {}
impl<T: Scalar> ReadsBackExactly for Vec<Option<T>> {}

/// Answers for any type whether it is known to read back exactly. Goes by the type, not by its name: a user's `String` may be
/// another one.
///
/// A constant of a type takes precedence over one of a trait, and the first exists only where the bound holds.
#[derive(Debug)]
pub struct ReadBack<T: ?Sized>(PhantomData<T>);

impl<T: ReadsBackExactly> ReadBack<T> {
    /// Whether the type is known to read back exactly.
    pub const IS_EXACT: bool = true;
}

/// The answer for all other types.
pub trait ReadBackUnknown {
    /// Whether the type is known to read back exactly.
    const IS_EXACT: bool = false;
}

impl<T: ?Sized> ReadBackUnknown for ReadBack<T> {}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::value::Value;

    /// Stores a value without reading it back, as is done for these types only, and reads it back.
    fn reads_back<T>(values: impl IntoIterator<Item = T>)
    where
        T: ReadsBackExactly + Serialize + DeserializeOwned + PartialEq + Debug,
    {
        for value in values {
            let (stored, floor) = Value::encode_checked(&value).unwrap();
            assert_eq!(stored.decode::<T>().unwrap(), value);
            assert_eq!(floor, crate::label::Floor::default());
        }
    }

    fn texts() -> Vec<String> {
        let all = (0..=0xffff).chain(0x1_f600..0x1_f610);
        let characters = all.filter_map(char::from_u32);
        let one = characters.clone().map(String::from);
        one.chain([String::new(), characters.collect()]).collect()
    }

    #[test]
    fn every_value_of_these_types_reads_back_as_it_was_written() {
        macro_rules! integers {
            ($($integer:ty)*) => {$(
                reads_back([<$integer>::MIN, 0, 1, <$integer>::MAX]);
            )*};
        }
        integers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);
        reads_back([false, true]);
        reads_back(['\0', '"', '\u{7f}', '\u{d7ff}', '\u{e000}', char::MAX]);
        reads_back(texts());
        reads_back([None, Some(String::new()), Some("null".to_owned())]);
        reads_back([None, Some(vec![]), Some(vec![u64::MAX])]);
        reads_back([vec![], texts()]);
        reads_back([vec![None, Some(0_u8), None]]);
    }
}
