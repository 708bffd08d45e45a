//! A field of a JSON body that is of the wrong type without failing the whole body, so that all
//! that is wrong with a request is told at once.

use std::fmt::Formatter;

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

impl Field<String> {
    /// The text, if one is given; a wrong type is put among `errors`.
    pub(super) fn optional(
        self,
        field: &'static str,
        errors: &mut Vec<FieldError>,
    ) -> Option<String> {
        match self {
            Self::Given(text) => Some(text),
            Self::Absent => None,
            Self::WrongType => {
                errors.push(FieldError {
                    field,
                    detail: "must be a string".to_owned(),
                });
                None
            }
        }
    }

    /// The text, which must be given.
    pub(super) fn required(
        self,
        field: &'static str,
        errors: &mut Vec<FieldError>,
    ) -> Option<String> {
        if self == Self::Absent {
            errors.push(FieldError {
                field,
                detail: "is required".to_owned(),
            });
        }
        self.optional(field, errors)
    }
}

impl<'de> Deserialize<'de> for Field<String> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Field<String>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Field::Given(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Field::Given(text))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Field::Absent)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Field::WrongType)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Field::WrongType)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Field::WrongType)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Field::WrongType)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        while sequence.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Field::WrongType)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::WrongType)
    }
}
