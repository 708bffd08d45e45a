//! The invalid fields of a form.

/// Error texts, shown beside their fields.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Wrong(Vec<(&'static str, String)>);

impl Wrong {
    /// One invalid field.
    pub(crate) fn one(field: &'static str, text: impl Into<String>) -> Self {
        Self(vec![(field, text.into())])
    }

    pub(crate) fn add(&mut self, field: &'static str, text: impl Into<String>) {
        self.0.push((field, text.into()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What to do about them.
    pub(crate) fn fix(&self) -> String {
        match self.0.len() {
            1 => "Fix the field marked below.".to_owned(),
            count => format!("Fix the {count} fields marked below."),
        }
    }

    /// A field's error.
    pub(crate) fn of(&self, field: &str) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| *name == field);
        found.map(|(_, text)| text.as_str())
    }
}
