//! The buttons that lead to a provider, as its branding rules have them, and its own pages on which access is removed.
//!
//! Google: <https://developers.google.com/identity/branding-guidelines>. Microsoft:
//! <https://learn.microsoft.com/entra/identity-platform/howto-add-branding-in-apps>.

use url::Url;

use super::messages::{ButtonMessages, Messages, Names, Phrase, Piece};
use mailgate_settings::{PluginSettings, ProviderKind};

/// A provider to choose.
#[derive(Debug)]
pub(crate) struct Button<'a> {
    pub(crate) provider: &'a PluginSettings,
    /// Of the link to it.
    pub(crate) query: String,
    /// Whether some button of the page is a company's: none may outshine it.
    has_brand: bool,
    /// Whether the company's own words don't say which provider it is.
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

    /// How it looks.
    pub(crate) fn class(&self) -> &'static str {
        match self.provider.kind {
            ProviderKind::Google => "sign-in google",
            ProviderKind::Microsoft => "sign-in microsoft",
            ProviderKind::Generic if self.has_brand => "sign-in",
            ProviderKind::Generic => "main",
        }
    }

    /// What a button of no company's says.
    pub(crate) fn words(&self, messages: &Messages) -> Vec<Piece<'a>> {
        messages.buttons.connect.of(&at(self.provider))
    }

    /// Which accounts the provider's page takes, where their owners might doubt it.
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

/// Whose accounts Microsoft's page takes, which stands in its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tenant {
    Any,
    /// Those of organizations, or of one.
    Work,
    Personal,
}

impl Tenant {
    /// `None` for a provider that isn't Microsoft itself.
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

/// A provider's own page on which its users remove access.
#[derive(Debug)]
pub(crate) struct Removal<'a> {
    provider: &'a PluginSettings,
    pub(crate) address: &'static str,
    phrase: fn(&Messages) -> Phrase,
}

impl<'a> Removal<'a> {
    /// Those of a provider, if it is the company itself.
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

    /// What its link says.
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

/// The page that asks, if it is the company's own: settings may have its ways with another's addresses.
fn page_at(provider: &PluginSettings, kind: ProviderKind, host: &str) -> Option<Url> {
    let page = Url::parse(&provider.authorize_url).ok()?;
    (provider.kind == kind && page.host_str() == Some(host)).then_some(page)
}
