//! Who runs the gateway, as the people who connect their mailboxes are told.

use super::reader::Reader;

/// Who runs the gateway.
#[derive(Debug, Clone, Default)]
pub struct PortalSettings {
    /// Their name; empty: the host of `http.base_url` stands for it.
    pub name: String,
    /// Where they help; empty: nowhere that is known.
    pub support_url: String,
}

pub(super) fn read(reader: &mut Reader<'_>) -> PortalSettings {
    PortalSettings {
        name: reader.text("portal.name"),
        support_url: reader.url("portal.support_url"),
    }
}
