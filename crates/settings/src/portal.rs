//! The portal, and the name of the gateway's operator.

use url::Url;

use super::reader::Reader;

/// Who runs the gateway.
#[derive(Debug, Clone, Default)]
pub struct PortalSettings {
    /// Whether the gateway serves the portal.
    pub enabled: bool,
    /// Their name; empty: the host of `http.base_url` stands for it.
    pub name: String,
    /// Where they help; empty: nowhere that is known.
    pub support_url: String,
    /// Where subscribers reach the portal, without a slash at its end; empty: `/portal` below `http.base_url`.
    pub base_url: String,
}

pub(super) fn read(reader: &mut Reader<'_>) -> PortalSettings {
    PortalSettings {
        enabled: reader.flag("portal.enabled"),
        name: reader.text("portal.name"),
        support_url: reader.url("portal.support_url"),
        base_url: reader.url("portal.base_url"),
    }
}

impl PortalSettings {
    /// Who runs the gateway, for mails: the name, or the host of an address of theirs.
    #[must_use]
    pub fn operator(&self, address: &str) -> String {
        if !self.name.is_empty() {
            return self.name.clone();
        }
        let host = Url::parse(address).ok();
        let host = host.as_ref().and_then(Url::host_str);
        host.unwrap_or("the email gateway").to_owned()
    }

    /// Where subscribers see to their accounts, with the gateway at `base_url`: in the portal, or on pages of the
    /// operator's own. `None`: nowhere that is known.
    #[must_use]
    pub fn address(&self, base_url: &str) -> Option<String> {
        match (self.base_url.as_str(), self.enabled) {
            ("", true) => Some(format!("{base_url}/portal")),
            ("", false) => None,
            (address, _) => Some(address.to_owned()),
        }
    }
}
