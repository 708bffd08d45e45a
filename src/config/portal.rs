//! The name of the gateway's operator, and where subscribers manage their accounts.

use super::reader::Reader;

/// Who runs the gateway.
#[derive(Debug, Clone, Default)]
pub struct PortalSettings {
    /// Their name; empty: the host of `http.base_url` stands for it.
    pub name: String,
    /// Where they help; empty: nowhere that is known.
    pub support_url: String,
    /// The pages where subscribers see to their accounts, `/billing` below it; empty: there are none that are known.
    pub base_url: String,
}

pub(super) fn read(reader: &mut Reader<'_>) -> PortalSettings {
    PortalSettings {
        name: reader.text("portal.name"),
        support_url: reader.url("portal.support_url"),
        base_url: reader.url("portal.base_url"),
    }
}
