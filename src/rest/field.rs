//! A field of a JSON body that is of the wrong type without failing the whole body, so that all
//! that is wrong with a request is told at once.

use std::fmt::Formatter;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::problem::FieldError;

/// What stands in a field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Field<T> {
    /// Nothing, or null.
    #[default]
    Absent,
    /// Something of another type.
    WrongType,
    /// What was asked for.
    Given(T),
}

/// What a field may hold.
pub(super) trait Kind: Sized {
    /// What is told when it holds something else.
    const WANTED: &'static str;

    fn from_text(_: String) -> Option<Self> {
        None
    }

    fn from_flag(_: bool) -> Option<Self> {
        None
    }
}

impl Kind for String {
    const WANTED: &'static str = "must be a string";

    fn from_text(text: String) -> Option<Self> {
        Some(text)
    }
}

impl Kind for bool {
    const WANTED: &'static str = "must be true or false";

    fn from_flag(flag: bool) -> Option<Self> {
        Some(flag)
    }
}

impl<T: Kind> Field<T> {
    /// What is given, if anything is; a wrong type is put among `errors`.
    pub(super) fn optional(self, field: &'static str, errors: &mut Vec<FieldError>) -> Option<T> {
        match self {
            Self::Given(value) => Some(value),
            Self::Absent => None,
            Self::WrongType => {
                errors.push(FieldError {
                    field,
                    detail: T::WANTED.to_owned(),
                });
                None
            }
        }
    }

    /// What must be given.
    pub(super) fn required(self, field: &'static str, errors: &mut Vec<FieldError>) -> Option<T> {
        if matches!(self, Self::Absent) {
            errors.push(FieldError {
                field,
                detail: "is required".to_owned(),
            });
        }
        self.optional(field, errors)
    }
}

impl<'de, T: Kind> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyVisitor(PhantomData))
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
        Ok(given(T::from_text(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Field<T>, E> {
        Ok(given(T::from_text(text)))
    }

    fn visit_unit<E>(self) -> Result<Field<T>, E> {
        Ok(Field::Absent)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Field<T>, E> {
        Ok(given(T::from_flag(flag)))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Field<T>, E> {
        Ok(Field::WrongType)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Field<T>, E> {
        Ok(Field::WrongType)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Field<T>, E> {
        Ok(Field::WrongType)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Field<T>, A::Error> {
        while sequence.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Field::WrongType)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field<T>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::WrongType)
    }
}
