//! A field of a JSON body. A wrong type doesn't fail the whole body, so that all errors of a request
//! are reported together.

use std::borrow::Cow;
use std::fmt::Formatter;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::problem::FieldError;

/// The content of a field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Field<T> {
    /// Missing, or null.
    #[default]
    Absent,
    /// A value of another type.
    WrongType,
    /// The expected type.
    Given(T),
}

/// A type that a field can hold.
pub(crate) trait Kind: Sized {
    /// The error for a value of another type.
    const WANTED: &'static str;

    fn from_text(_: &str) -> Option<Self> {
        None
    }

    fn from_flag(_: bool) -> Option<Self> {
        None
    }

    fn from_number(_: u64) -> Option<Self> {
        None
    }

    fn from_sequence<'de, A: SeqAccess<'de>>(mut sequence: A) -> Result<Option<Self>, A::Error> {
        while sequence.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

impl Kind for String {
    const WANTED: &'static str = "must be a string";

    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl Kind for bool {
    const WANTED: &'static str = "must be true or false";

    fn from_flag(flag: bool) -> Option<Self> {
        Some(flag)
    }
}

impl Kind for u64 {
    const WANTED: &'static str = "must be a whole number";

    fn from_number(number: u64) -> Option<Self> {
        Some(number)
    }
}

/// Maximum number of elements of a list that are kept; no list may have more.
const KEPT: usize = 10_000;

/// A list whose elements are validated one by one. Only the beginning of a very long one is kept, so
/// that it takes no more memory than its text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct List<T> {
    pub(crate) kept: Vec<Field<T>>,
    /// The number of elements.
    pub(crate) length: usize,
}

impl<T: Kind> Kind for List<T> {
    const WANTED: &'static str = "must be an array";

    fn from_sequence<'de, A: SeqAccess<'de>>(mut sequence: A) -> Result<Option<Self>, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < KEPT {
            match sequence.next_element()? {
                Some(element) => kept.push(element),
                None => break,
            }
        }
        let mut length = kept.len();
        while sequence.next_element::<IgnoredAny>()?.is_some() {
            length += 1;
        }
        Ok(Some(Self { kept, length }))
    }
}

/// An object of strings under the caller's own names, with [`List`]'s bound.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Texts {
    pub(crate) kept: Vec<(String, Field<String>)>,
    /// The number of entries.
    pub(crate) length: usize,
}

impl Kind for Texts {
    const WANTED: &'static str = "must be an object";

    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < KEPT {
            match map.next_entry()? {
                Some(entry) => kept.push(entry),
                None => break,
            }
        }
        let mut length = kept.len();
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            length += 1;
        }
        Ok(Some(Self { kept, length }))
    }
}

impl<T> Field<T> {
    /// The value, if it is given and of the right type.
    pub(crate) fn given(&self) -> Option<&T> {
        match self {
            Self::Given(value) => Some(value),
            Self::Absent | Self::WrongType => None,
        }
    }
}

impl<T: Kind> Field<T> {
    /// The value, if given; a wrong type is added to `errors`.
    pub(crate) fn optional(
        self,
        field: impl Into<Cow<'static, str>>,
        errors: &mut Vec<FieldError>,
    ) -> Option<T> {
        match self {
            Self::Given(value) => Some(value),
            Self::Absent => None,
            Self::WrongType => {
                errors.push(FieldError::new(field, T::WANTED));
                None
            }
        }
    }

    /// A required value.
    pub(crate) fn required(
        self,
        field: impl Into<Cow<'static, str>>,
        errors: &mut Vec<FieldError>,
    ) -> Option<T> {
        if matches!(self, Self::Absent) {
            errors.push(FieldError::new(field, "is required"));
            return None;
        }
        self.optional(field, errors)
    }

    /// An element of a list or an object, where null is a wrong type too.
    pub(crate) fn element(
        self,
        field: impl Into<Cow<'static, str>>,
        errors: &mut Vec<FieldError>,
    ) -> Option<T> {
        let here = if matches!(self, Self::Absent) {
            Self::WrongType
        } else {
            self
        };
        here.optional(field, errors)
    }
}

impl<'de, T: Kind> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As an option, so that a missing field needs no default of its own.
        deserializer.deserialize_option(AnyVisitor(PhantomData))
    }
}

struct AnyVisitor<T>(PhantomData<T>);

fn given<T>(value: Option<T>) -> Field<T> {
    value.map_or(Field::WrongType, Field::Given)
}

impl<'de, T: Kind> Visitor<'de> for AnyVisitor<T> {
    type Value = Field<T>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Field<T>, E> {
        Ok(given(T::from_text(text)))
    }

    fn visit_none<E>(self) -> Result<Field<T>, E> {
        Ok(Field::Absent)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Field<T>, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Field<T>, E> {
        Ok(given(T::from_flag(flag)))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Field<T>, E> {
        Ok(Field::WrongType)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Field<T>, E> {
        Ok(given(T::from_number(number)))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Field<T>, E> {
        Ok(Field::WrongType)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<Field<T>, A::Error> {
        T::from_sequence(sequence).map(given)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Field<T>, A::Error> {
        T::from_map(map).map(given)
    }
}
