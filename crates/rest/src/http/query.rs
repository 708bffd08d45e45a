//! Queries. For pages, a repeated parameter is an error, and so is one that isn't
//! UTF-8.

use std::ops::RangeInclusive;

use axum::extract::{FromRequestParts, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;
use utoipa::openapi::path::ParameterIn;

use super::problem::{FieldError, Problem};
use crate::AppState;

/// Maximum number of unknown parameters that an error names.
const MOST_UNKNOWN: usize = 10;

/// A query of described string parameters. It comes after the extractor that authenticates the caller.
pub(crate) struct Described<T>(pub(crate) T);

impl<T: DeserializeOwned + IntoParams> FromRequestParts<AppState> for Described<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, Problem> {
        let known = T::into_params(|| Some(ParameterIn::Query));
        let query = parts.uri.query().unwrap_or_default();
        let unknown = url::form_urlencoded::parse(query.as_bytes())
            .filter(|(name, _)| !known.iter().any(|parameter| parameter.name == *name))
            .map(|(name, _)| {
                let detail = "is not a parameter of this operation";
                FieldError::new(name.into_owned(), detail)
            });
        let errors: Vec<FieldError> = unknown.take(MOST_UNKNOWN).collect();
        if !errors.is_empty() {
            return Err(Problem::fields(errors));
        }
        // The only decoding error is a repeated parameter.
        let read = Query::try_from_uri(&parts.uri);
        read.map(|Query(query)| Self(query)).map_err(|rejection| {
            Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid_request",
                format!("The query can't be read: {}.", rejection.body_text()),
            )
        })
    }
}

/// A number within its bounds; others are added to `errors`.
pub(crate) fn whole_number(
    field: &'static str,
    text: Option<String>,
    bounds: RangeInclusive<u32>,
    errors: &mut Vec<FieldError>,
) -> Option<u32> {
    let number = text?.parse().ok().filter(|number| bounds.contains(number));
    if number.is_none() {
        let (lowest, highest) = bounds.into_inner();
        let detail = if highest == u32::MAX {
            format!("must be a whole number, at least {lowest}")
        } else {
            format!("must be a whole number from {lowest} to {highest}")
        };
        errors.push(FieldError::new(field, detail));
    }
    number
}

/// Decoded parameters, in order.
#[derive(Debug)]
pub(crate) struct QueryParameters(Vec<(String, String)>);

impl QueryParameters {
    /// Decodes a query (`application/x-www-form-urlencoded`).
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let decoded = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(decoded.into_owned().collect())
    }

    /// A parameter that is given at most once.
    pub(crate) fn once(&self, name: &'static str) -> Result<Option<&str>, String> {
        let mut values = self.0.iter().filter(|(found, _)| found == name);
        let value = values.next().map(|(_, value)| value.as_str());
        if values.next().is_some() {
            return Err(format!("{name} is given twice"));
        }
        Ok(value)
    }

    /// The same with at most `longest` characters and no control characters; an empty one counts as
    /// missing.
    pub(crate) fn text(&self, name: &'static str, longest: usize) -> Result<Option<&str>, String> {
        let Some(value) = self.once(name)?.filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        if value.chars().count() > longest {
            return Err(format!("{name} must have at most {longest} characters"));
        }
        // A replacement character stands for bytes that can't be decoded.
        if value
            .contains(|letter: char| letter.is_control() || letter == char::REPLACEMENT_CHARACTER)
        {
            return Err(format!("{name} must be UTF-8 without control characters"));
        }
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_and_text() {
        let query = QueryParameters::parse(Some("a=1+%2B&b=&c=1&c=1&d=%00&e=%ff&f=%C3%BC%C3%BC&g"));
        assert_eq!(query.once("a"), Ok(Some("1 +")));
        assert_eq!(query.once("b"), Ok(Some("")));
        assert_eq!(query.text("b", 5), Ok(None));
        assert_eq!(query.text("g", 5), Ok(None));
        assert_eq!(query.once("z"), Ok(None));
        assert!(query.once("c").is_err());
        assert!(query.text("d", 5).is_err());
        assert!(query.text("e", 5).is_err());
        assert_eq!(query.text("f", 2), Ok(Some("üü")));
        assert!(query.text("f", 1).is_err());
        assert_eq!(QueryParameters::parse(None).once("a"), Ok(None));
    }
}
