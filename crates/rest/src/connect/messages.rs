//! The texts of the pages for end users, in each language. A language with a missing text doesn't compile.

mod de;
mod en;
mod es;
mod fr;
mod ja;
mod phrase;

pub(crate) use phrase::{Names, Phrase, Piece};

use mailgate_types::language::Language;

/// A title, and the text below it.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) title: &'static str,
    pub(crate) text: &'static str,
}

/// All texts in one language. The names in braces are those of [`Names`].
#[derive(Debug)]
pub(crate) struct Messages {
    pub(crate) consent: ConsentMessages,
    pub(crate) buttons: ButtonMessages,
    pub(crate) result: ResultMessages,
    pub(crate) failures: FailureMessages,
    pub(crate) notices: NoticeMessages,
    pub(crate) front: FrontMessages,
    /// Between the last two names of several.
    pub(crate) or: &'static str,
    /// For a provider whose name is no longer known.
    pub(crate) the_provider: &'static str,
    /// Alternative text of the app's logo.
    pub(crate) logo: Phrase,
    /// The heading of the links to the other languages.
    pub(crate) languages: &'static str,
    /// A link to the operator's support page.
    pub(crate) help: &'static str,
}

/// The consent page.
#[derive(Debug)]
pub(crate) struct ConsentMessages {
    pub(crate) title: &'static str,
    pub(crate) asks: Phrase,
    /// What the marks before the permissions mean, for screen readers.
    pub(crate) allowed: &'static str,
    pub(crate) not_allowed: &'static str,
    pub(crate) can: Phrase,
    pub(crate) sends: &'static str,
    pub(crate) sees_replies: &'static str,
    pub(crate) cannot: Phrase,
    pub(crate) reads_nothing: &'static str,
    pub(crate) changes_nothing: &'static str,
    pub(crate) review: &'static str,
    pub(crate) how_to_remove: &'static str,
    /// `{label}` lists all of the providers.
    pub(crate) remove: Phrase,
    pub(crate) remove_at: Phrase,
    pub(crate) remove_at_personal: Phrase,
    pub(crate) remove_at_work: Phrase,
    /// `{operator}` is the operator's name, or else the gateway's host.
    pub(crate) gateway: Phrase,
}

/// The buttons that lead to a provider. Google's and Microsoft's texts follow their guidelines.
#[derive(Debug)]
pub(crate) struct ButtonMessages {
    pub(crate) connect: Phrase,
    pub(crate) google: &'static str,
    pub(crate) microsoft: &'static str,
    /// The Microsoft accounts that are accepted.
    pub(crate) any_account: &'static str,
    pub(crate) work_account: &'static str,
    pub(crate) personal_account: &'static str,
}

/// The last page.
#[derive(Debug)]
pub(crate) struct ResultMessages {
    pub(crate) connected: &'static str,
    pub(crate) can_send: Phrase,
    pub(crate) not_connected: &'static str,
    /// Opens the provider's own words.
    pub(crate) details: &'static str,
    pub(crate) provider_says: Phrase,
    pub(crate) try_again: &'static str,
    pub(crate) back: Phrase,
    pub(crate) leave: Phrase,
    pub(crate) code: &'static str,
    pub(crate) request: &'static str,
}

impl ResultMessages {
    /// The text of a link to the app's site.
    pub(crate) fn back_to<'a>(&self, app: &'a str, host: &'a str) -> Vec<Piece<'a>> {
        let names = Names {
            app,
            host,
            ..Names::default()
        };
        self.back.of(&names)
    }

    /// The text if that site is unknown.
    pub(crate) fn leave_for<'a>(&self, app: &'a str) -> Vec<Piece<'a>> {
        self.leave.of(&Names::app(app))
    }
}

/// Why a mailbox was not connected.
#[derive(Debug)]
pub(crate) struct FailureMessages {
    pub(crate) access_denied: Phrase,
    pub(crate) not_completed: Phrase,
    pub(crate) insufficient_scope: Phrase,
    pub(crate) no_refresh_token: Phrase,
    pub(crate) no_address: Phrase,
    pub(crate) unverified_address: Phrase,
    pub(crate) sign_in_required: Phrase,
    pub(crate) invalid_grant: Phrase,
    pub(crate) provider_unavailable: Phrase,
    pub(crate) provider_error: Phrase,
    pub(crate) plugin_off: Phrase,
    pub(crate) user_id_missing: Phrase,
    pub(crate) wrong_account: Phrase,
    pub(crate) already_connected: Phrase,
    pub(crate) too_many_mailboxes: Phrase,
    pub(crate) too_many_for_app: Phrase,
    pub(crate) app_suspended: Phrase,
    pub(crate) session_required: Phrase,
    pub(crate) link_used: Phrase,
    pub(crate) unavailable: Phrase,
    pub(crate) internal_error: Phrase,
}

/// An invalid link or address.
#[derive(Debug)]
pub(crate) struct NoticeMessages {
    pub(crate) another_site: Notice,
    pub(crate) unavailable: Notice,
    pub(crate) internal_error: Notice,
    pub(crate) no_such_link: Notice,
    pub(crate) session_invalid: Notice,
    pub(crate) session_used: Notice,
    pub(crate) session_required: Notice,
    pub(crate) app_suspended: Notice,
    pub(crate) plugin_off: Notice,
    pub(crate) wrong_link: Notice,
    pub(crate) not_set_up: Notice,
    pub(crate) rate_limited: Notice,
    pub(crate) no_such_result: Notice,
    pub(crate) invalid_callback: Notice,
    pub(crate) another_browser: Notice,
    pub(crate) link_dead: Notice,
}

/// The front page, and the page for unknown addresses.
#[derive(Debug)]
pub(crate) struct FrontMessages {
    pub(crate) gateway: Notice,
    pub(crate) nothing: Notice,
    pub(crate) for_users: &'static str,
    pub(crate) for_developers: &'static str,
    pub(crate) documentation: &'static str,
}

/// The texts in this language.
pub(crate) fn messages(language: Language) -> &'static Messages {
    match language {
        Language::English => &en::MESSAGES,
        Language::German => &de::MESSAGES,
        Language::French => &fr::MESSAGES,
        Language::Spanish => &es::MESSAGES,
        Language::Japanese => &ja::MESSAGES,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Every text of a language, by the name of its field.
    fn texts(language: Language) -> Vec<(String, String)> {
        // The derived Debug names each field, and quotes each text.
        let shown = format!("{:#?}", messages(language)).replace("\\u{a0}", "\u{a0}");
        let mut path = Vec::new();
        let mut texts = Vec::new();
        for line in shown.lines() {
            let line = line.trim();
            if line.starts_with('"') {
                texts.push((path.join("."), line.to_owned()));
            } else if let Some((name, value)) = line.split_once(": ") {
                if value.ends_with(['{', '(']) {
                    path.push(name.to_owned());
                } else if value.starts_with('"') {
                    texts.push((format!("{}.{name}", path.join(".")), value.to_owned()));
                }
            } else if line.starts_with(['}', ')']) {
                path.pop();
            }
        }
        texts
    }

    fn placeholders(text: &str) -> Vec<&str> {
        let pieces = text.split('{').skip(1);
        let mut names: Vec<&str> = pieces.filter_map(|it| it.split('}').next()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    #[test]
    fn each_language_says_everything_with_the_same_names() {
        let english = texts(Language::English);
        assert!(english.len() > 90, "only {} texts", english.len());
        for language in Language::ALL {
            let own: HashMap<String, String> = texts(language).into_iter().collect();
            assert_eq!(own.len(), english.len(), "{language:?}");
            for (name, text) in &english {
                let translated = &own[name];
                assert!(translated.len() > 2, "{language:?} {name}");
                assert_eq!(
                    placeholders(translated),
                    placeholders(text),
                    "{language:?} {name}"
                );
                for placeholder in placeholders(text) {
                    assert!(Names::ALL.contains(&placeholder), "{name}: {placeholder}");
                }
                // Names alone may be the same in all languages.
                let is_own = language == Language::English || translated != text;
                let is_name = ["or", "result.code", "result.back"]
                    .iter()
                    .any(|it| name.ends_with(it));
                assert!(is_own || is_name, "{language:?} {name} is English");
            }
        }
    }

    #[test]
    fn no_text_has_markup_or_the_wrong_marks() {
        for language in Language::ALL {
            for (name, text) in texts(language) {
                let text = text.trim_end_matches(',').trim_matches('"');
                assert!(!text.contains(['<', '>', '&']), "{language:?} {name}");
                assert!(!text.contains("  "), "{language:?} {name}: {text}");
                if language == Language::Japanese {
                    assert!(!text.ends_with('.'), "{name}: {text}");
                }
                if language == Language::French {
                    // A no-break space precedes these.
                    for mark in [" ?", " :", " ;", " !", "« ", " »"] {
                        assert!(!text.contains(mark), "{name}: {text}");
                    }
                }
            }
        }
    }
}
