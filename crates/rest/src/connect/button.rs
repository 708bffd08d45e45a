//! The buttons that lead to a provider, following its branding rules, and the provider's own pages for removing access.
//!
//! Google: <https://developers.google.com/identity/branding-guidelines>. Microsoft:
//! <https://learn.microsoft.com/entra/identity-platform/howto-add-branding-in-apps>.

use url::Url;

use super::messages::{ButtonMessages, Messages, Names, Phrase, Piece};
use mailgate_settings::{PluginSettings, ProviderKind};

/// A provider's button.
#[derive(Debug)]
pub(crate) struct Button<'a> {
    pub(crate) provider: &'a PluginSettings,
    /// The query of its link.
    pub(crate) query: String,
    /// Whether the page has a branded button: others must not outshine it.
    has_brand: bool,
    /// Whether the branded text doesn't identify the provider.
    pub(crate) says_which: bool,
}

impl<'a> Button<'a> {
    pub(crate) fn new(provider: &'a PluginSettings, query: String, has_brand: bool) -> Self {
        let company = match provider.kind {
            ProviderKind::Google => "Google",
            ProviderKind::Microsoft => "Microsoft",
            ProviderKind::Generic => &provider.label,
        };
        Self {
            provider,
            query,
            has_brand,
            says_which: provider.label != company,
        }
    }

    /// Its style.
    pub(crate) fn class(&self) -> &'static str {
        match self.provider.kind {
            ProviderKind::Google => "sign-in google",
            ProviderKind::Microsoft => "sign-in microsoft",
            ProviderKind::Generic if self.has_brand => "sign-in",
            ProviderKind::Generic => "main",
        }
    }

    /// The text of an unbranded button.
    pub(crate) fn words(&self, messages: &Messages) -> Vec<Piece<'a>> {
        messages.buttons.connect.of(&at(self.provider))
    }

    /// The accounts that the provider's page accepts, if users might doubt it.
    pub(crate) fn accounts(&self, messages: &Messages) -> Option<&'static str> {
        let ButtonMessages {
            any_account,
            work_account,
            personal_account,
            ..
        } = messages.buttons;
        match Tenant::of(self.provider)? {
            Tenant::Any => Some(any_account),
            Tenant::Work => Some(work_account),
            Tenant::Personal => Some(personal_account),
        }
    }
}

/// The accounts that Microsoft's page accepts, according to its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tenant {
    Any,
    /// Those of organizations, or of one.
    Work,
    Personal,
}

impl Tenant {
    /// `None` for a provider other than Microsoft itself.
    fn of(provider: &PluginSettings) -> Option<Self> {
        let page = page_at(
            provider,
            ProviderKind::Microsoft,
            "login.microsoftonline.com",
        )?;
        Some(match page.path_segments()?.next()? {
            "common" => Self::Any,
            "consumers" => Self::Personal,
            _ => Self::Work,
        })
    }
}

/// A provider's own page for removing access.
#[derive(Debug)]
pub(crate) struct Removal<'a> {
    provider: &'a PluginSettings,
    pub(crate) address: &'static str,
    phrase: fn(&Messages) -> Phrase,
}

impl<'a> Removal<'a> {
    /// The provider's pages, if it is the company itself.
    pub(crate) fn of(provider: &'a PluginSettings) -> Vec<Self> {
        let at = |address, phrase| Self {
            provider,
            address,
            phrase,
        };
        if page_at(provider, ProviderKind::Google, "accounts.google.com").is_some() {
            return vec![at("https://myaccount.google.com/connections", |messages| {
                messages.consent.remove_at
            })];
        }
        let tenant = Tenant::of(provider);
        let is_personal = matches!(tenant, Some(Tenant::Any | Tenant::Personal));
        let is_work = matches!(tenant, Some(Tenant::Any | Tenant::Work));
        let personal = at("https://account.live.com/consent/Manage", |messages| {
            messages.consent.remove_at_personal
        });
        let work = at("https://myapps.microsoft.com", |messages| {
            messages.consent.remove_at_work
        });
        let both = [is_personal.then_some(personal), is_work.then_some(work)];
        both.into_iter().flatten().collect()
    }

    /// Its link text.
    pub(crate) fn words(&self, messages: &Messages) -> String {
        (self.phrase)(messages).plain(&at(self.provider))
    }
}

fn at(provider: &PluginSettings) -> Names<'_> {
    Names {
        label: &provider.label,
        ..Names::default()
    }
}

/// The authorization page, if it is the company's own: settings can combine a company's conventions with other URLs.
fn page_at(provider: &PluginSettings, kind: ProviderKind, host: &str) -> Option<Url> {
    let page = Url::parse(&provider.authorize_url).ok()?;
    (provider.kind == kind && page.host_str() == Some(host)).then_some(page)
}
