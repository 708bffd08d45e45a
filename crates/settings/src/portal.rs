//! The portal, and the name of the gateway's operator.

use url::Url;

use super::reader::Reader;

/// The portal, and the gateway's operator.
#[derive(Debug, Clone, Default)]
pub struct PortalSettings {
    /// Whether the gateway serves the portal.
    pub enabled: bool,
    /// The operator's name; empty: the host of `http.base_url`.
    pub name: String,
    /// The operator's support page; empty: unknown.
    pub support_url: String,
    /// The portal's URL for subscribers, without a trailing slash; empty: `/portal` below `http.base_url`.
    pub base_url: String,
    /// Whether it has a page of all its components, for whoever changes the look; set by `mailgate dev`.
    pub shows_components: bool,
}

pub(super) fn read(reader: &mut Reader<'_>) -> PortalSettings {
    PortalSettings {
        enabled: reader.flag("portal.enabled"),
        name: reader.text("portal.name"),
        support_url: reader.url("portal.support_url"),
        base_url: reader.url("portal.base_url"),
        shows_components: false,
    }
}

impl PortalSettings {
    /// The operator's name for emails, or else the host of one of their URLs.
    #[must_use]
    pub fn operator(&self, address: &str) -> String {
        if !self.name.is_empty() {
            return self.name.clone();
        }
        let host = Url::parse(address).ok();
        let host = host.as_ref().and_then(Url::host_str);
        host.unwrap_or("the email gateway").to_owned()
    }

    /// Where subscribers manage their accounts, with the gateway at `base_url`: the portal, or the operator's own
    /// pages. `None`: unknown.
    #[must_use]
    pub fn address(&self, base_url: &str) -> Option<String> {
        match (self.base_url.as_str(), self.enabled) {
            ("", true) => Some(format!("{base_url}/portal")),
            ("", false) => None,
            (address, _) => Some(address.to_owned()),
        }
    }
}
