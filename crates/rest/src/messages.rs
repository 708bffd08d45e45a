//! What the pages for end users say, in each language. A language that lacks a text doesn't compile.

mod de;
mod en;
mod es;
mod fr;
mod ja;
mod phrase;

pub(super) use phrase::{Names, Phrase, Piece};

use mailgate_types::language::Language;

/// A title, and the text below it.
#[derive(Debug)]
pub(super) struct Notice {
    pub(super) title: &'static str,
    pub(super) text: &'static str,
}

/// All texts in one language. The names in braces are those of [`Names`].
#[derive(Debug)]
pub(super) struct Messages {
    pub(super) consent: ConsentMessages,
    pub(super) buttons: ButtonMessages,
    pub(super) result: ResultMessages,
    pub(super) failures: FailureMessages,
    pub(super) notices: NoticeMessages,
    pub(super) front: FrontMessages,
    /// Between the last two names of several.
    pub(super) or: &'static str,
    /// For one whose name isn't known any more.
    pub(super) the_provider: &'static str,
    /// For those who don't see the app's logo.
    pub(super) logo: Phrase,
    /// The heading of the links to the other languages.
    pub(super) languages: &'static str,
    /// A link to whoever runs the gateway.
    pub(super) help: &'static str,
}

/// The page that asks.
#[derive(Debug)]
pub(super) struct ConsentMessages {
    pub(super) title: &'static str,
    pub(super) asks: Phrase,
    pub(super) can: Phrase,
    pub(super) sends: &'static str,
    pub(super) sees_replies: &'static str,
    pub(super) cannot: Phrase,
    pub(super) reads_nothing: &'static str,
    pub(super) changes_nothing: &'static str,
    pub(super) review: &'static str,
    pub(super) how_to_remove: &'static str,
    /// `{label}` is all of the providers.
    pub(super) remove: Phrase,
    pub(super) remove_at: Phrase,
    pub(super) remove_at_personal: Phrase,
    pub(super) remove_at_work: Phrase,
    pub(super) runs_at: Phrase,
    pub(super) run_by: Phrase,
}

/// The buttons that lead to a provider. Google's and Microsoft's are worded as those companies do.
#[derive(Debug)]
pub(super) struct ButtonMessages {
    pub(super) connect: Phrase,
    pub(super) google: &'static str,
    pub(super) microsoft: &'static str,
    /// Which accounts of Microsoft's are taken.
    pub(super) any_account: &'static str,
    pub(super) work_account: &'static str,
    pub(super) personal_account: &'static str,
}

/// The page at the end.
#[derive(Debug)]
pub(super) struct ResultMessages {
    pub(super) connected: &'static str,
    pub(super) can_send: Phrase,
    pub(super) not_connected: &'static str,
    /// Follows the text.
    pub(super) provider_says: Phrase,
    pub(super) try_again: &'static str,
    pub(super) back: Phrase,
    pub(super) leave: Phrase,
    pub(super) code: &'static str,
    pub(super) request: &'static str,
}

impl ResultMessages {
    /// The words of a link to a site of the app's.
    pub(super) fn back_to<'a>(&self, app: &'a str, host: &'a str) -> Vec<Piece<'a>> {
        let names = Names {
            app,
            host,
            ..Names::default()
        };
        self.back.of(&names)
    }

    /// The words where no such site is known.
    pub(super) fn leave_for<'a>(&self, app: &'a str) -> Vec<Piece<'a>> {
        self.leave.of(&Names::app(app))
    }
}

/// Why a mailbox was not connected.
#[derive(Debug)]
pub(super) struct FailureMessages {
    pub(super) access_denied: Phrase,
    pub(super) not_completed: Phrase,
    pub(super) insufficient_scope: Phrase,
    pub(super) no_refresh_token: Phrase,
    pub(super) no_address: Phrase,
    pub(super) unverified_address: Phrase,
    pub(super) sign_in_required: Phrase,
    pub(super) invalid_grant: Phrase,
    pub(super) provider_unavailable: Phrase,
    pub(super) provider_error: Phrase,
    pub(super) plugin_off: Phrase,
    pub(super) user_id_missing: Phrase,
    pub(super) wrong_account: Phrase,
    pub(super) already_connected: Phrase,
    pub(super) too_many_mailboxes: Phrase,
    pub(super) too_many_for_app: Phrase,
    pub(super) app_suspended: Phrase,
    pub(super) session_required: Phrase,
    pub(super) link_used: Phrase,
    pub(super) unavailable: Phrase,
    pub(super) internal_error: Phrase,
}

/// What is wrong with a link or an address.
#[derive(Debug)]
pub(super) struct NoticeMessages {
    pub(super) another_site: Notice,
    pub(super) unavailable: Notice,
    pub(super) internal_error: Notice,
    pub(super) no_such_link: Notice,
    pub(super) session_invalid: Notice,
    pub(super) session_used: Notice,
    pub(super) session_required: Notice,
    pub(super) app_suspended: Notice,
    pub(super) plugin_off: Notice,
    pub(super) wrong_link: Notice,
    pub(super) not_set_up: Notice,
    pub(super) rate_limited: Notice,
    pub(super) no_such_result: Notice,
    pub(super) invalid_callback: Notice,
    pub(super) another_browser: Notice,
    pub(super) link_dead: Notice,
}

/// The front page, and the one for addresses at which there is nothing.
#[derive(Debug)]
pub(super) struct FrontMessages {
    pub(super) gateway: Notice,
    pub(super) nothing: Notice,
    pub(super) for_users: &'static str,
    pub(super) for_developers: &'static str,
    pub(super) documentation: &'static str,
}

/// The texts in this language.
pub(super) fn messages(language: Language) -> &'static Messages {
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
                // Names alone may be the same everywhere.
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
                    // A no-break space stands before these.
                    for mark in [" ?", " :", " ;", " !", "« ", " »"] {
                        assert!(!text.contains(mark), "{name}: {text}");
                    }
                }
            }
        }
    }
}
