//! The walk over a value before it is encoded: refuses what JSON would silently turn into `null`, and collects the labels of
//! labeled values.
//!
//! `serde_json` writes numbers that are not finite as `null`, which an `Option<f64>` reads back as `None`: a lost value that no
//! decoder can notice. And once a value is JSON, a labeled value looks like a user's struct with the same fields. So the value
//! is walked once before.

use std::cell::RefCell;
use std::fmt;

use serde::Serialize;
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use crate::error::ValueError;
use crate::label::{Floor, LABELED, LABELS, Labels};

/// Refuses what would not be read back, and returns the labels that every labeled value inside has.
pub(super) fn check<T: Serialize + ?Sized>(value: &T) -> Result<Floor, ValueError> {
    let floor = RefCell::default();
    let walk = Walk {
        floor: &floor,
        in_labeled: false,
    };
    value.serialize(walk).map_err(|fault| match fault {
        Fault::NotFinite => ValueError::NotFinite,
        Fault::Custom(text) => ValueError::Encode {
            source: text.into(),
        },
    })?;
    Ok(floor.into_inner())
}

#[derive(Debug)]
enum Fault {
    NotFinite,
    Custom(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NotFinite => f.write_str("not a finite number"),
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

#[derive(Clone, Copy)]
struct Walk<'a> {
    floor: &'a RefCell<Floor>,
    /// Whether the fields are those of a labeled value.
    in_labeled: bool,
}

impl Walk<'_> {
    /// Only labeled values come here, so only programs that use them pay for it.
    fn take_labels<T: ?Sized + Serialize>(self, labels: &T) -> Result<(), Fault> {
        let labels = serde_json::to_value(labels).and_then(serde_json::from_value::<Labels>);
        let labels = labels.map_err(Fault::custom)?;
        self.floor.borrow_mut().lower_to(&labels);
        Ok(())
    }
}

macro_rules! accept {
    ($($method:ident: $ty:ty),* $(,)?) => {
        $(fn $method(self, _: $ty) -> Result<(), Fault> { Ok(()) })*
    };
}

impl Serializer for Walk<'_> {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    accept! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    }

    fn serialize_f32(self, v: f32) -> Result<(), Fault> {
        if v.is_finite() {
            Ok(())
        } else {
            Err(Fault::NotFinite)
        }
    }
    fn serialize_f64(self, v: f64) -> Result<(), Fault> {
        if v.is_finite() {
            Ok(())
        } else {
            Err(Fault::NotFinite)
        }
    }
    fn serialize_none(self) -> Result<(), Fault> {
        Ok(())
    }
    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), Fault> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<(), Fault> {
        Ok(())
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Fault> {
        Ok(())
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
        _: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        value.serialize(self)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Fault> {
        Ok(self)
    }
    fn serialize_tuple(self, _: usize) -> Result<Self, Fault> {
        Ok(self)
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Fault> {
        Ok(self)
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Fault> {
        Ok(self)
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Self, Fault> {
        Ok(self)
    }
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Self, Fault> {
        Ok(Self {
            in_labeled: name == LABELED,
            ..self
        })
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Fault> {
        Ok(self)
    }
}

macro_rules! elements {
    ($($which:ident::$method:ident),* $(,)?) => {
        $(impl $which for Walk<'_> {
            type Ok = ();
            type Error = Fault;
            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Fault> {
                value.serialize(*self)
            }
            fn end(self) -> Result<(), Fault> {
                Ok(())
            }
        })*
    };
}

elements! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
}

impl SerializeMap for Walk<'_> {
    type Ok = ();
    type Error = Fault;
    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Fault> {
        key.serialize(*self)
            .map_err(|_| Fault::custom("a map key is not a finite number"))
    }
    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Fault> {
        value.serialize(*self)
    }
    fn end(self) -> Result<(), Fault> {
        Ok(())
    }
}

impl SerializeStruct for Walk<'_> {
    type Ok = ();
    type Error = Fault;
    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        if self.in_labeled && name == LABELS {
            return self.take_labels(value);
        }
        value.serialize(*self)
    }
    fn end(self) -> Result<(), Fault> {
        Ok(())
    }
}

impl SerializeStructVariant for Walk<'_> {
    type Ok = ();
    type Error = Fault;
    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        value.serialize(*self)
    }
    fn end(self) -> Result<(), Fault> {
        Ok(())
    }
}
