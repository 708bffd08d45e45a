//! References from one object to another.

use serde::Deserialize;

/// A reference, which the provider writes as an id, or as the whole object if expanded.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Reference<T> {
    /// The object's id.
    Id(String),
    /// The object itself.
    Object(Box<T>),
}

/// An object of which only the id is used.
#[derive(Debug, Clone, Deserialize)]
pub struct Identified {
    /// Its id.
    pub id: String,
}

/// A reference to an object of which only the id is used.
pub type IdOnly = Reference<Identified>;

/// An object with an id.
pub trait HasId {
    /// The id.
    fn id(&self) -> &str;
}

impl HasId for Identified {
    fn id(&self) -> &str {
        &self.id
    }
}

impl<T: HasId> Reference<T> {
    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Id(id) => id,
            Self::Object(object) => object.id(),
        }
    }
}
