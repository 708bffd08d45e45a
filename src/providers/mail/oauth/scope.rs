//! The scopes that a refresh requests: those in the settings that the mailbox's user has granted. A scope that the
//! operator has added since would be refused, and would disconnect working mailboxes.

/// Scopes that responses omit even if they were granted: they give no access to a mailbox.
const UNTOLD: [&str; 4] = ["openid", "email", "profile", "offline_access"];

/// The configured scopes that were granted; all of them if that is unknown.
pub(super) fn still_granted<'a>(settings: &'a [String], granted: &[String]) -> Vec<&'a str> {
    let is_granted = |scope: &str| {
        granted.is_empty()
            || UNTOLD.contains(&scope)
            || name(scope) == ".default"
            || (granted.iter()).any(|given| name(given).eq_ignore_ascii_case(name(scope)))
    };
    (settings.iter().map(String::as_str))
        .filter(|scope| is_granted(scope))
        .collect()
}

/// Without the URI of the service: Microsoft responds with `Mail.Send` for `https://graph.microsoft.com/Mail.Send`.
fn name(scope: &str) -> &str {
    scope.rsplit('/').next().unwrap_or(scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_since_is_left_out() {
        const ASKED: &str = "openid offline_access https://graph.microsoft.com/Mail.Send https://graph.microsoft.com/Mail.ReadWrite";
        for (asked, granted, expected) in [
            (ASKED, "", ASKED),
            (ASKED, "mail.send Mail.ReadWrite", ASKED),
            (
                ASKED,
                "https://graph.microsoft.com/Mail.Send",
                "openid offline_access https://graph.microsoft.com/Mail.Send",
            ),
            (
                "https://graph.microsoft.com/.default",
                "Mail.Send",
                "https://graph.microsoft.com/.default",
            ),
        ] {
            let list = |text: &str| -> Vec<String> {
                text.split_whitespace().map(str::to_owned).collect()
            };
            let asked = list(asked);
            assert_eq!(still_granted(&asked, &list(granted)).join(" "), expected);
        }
    }
}
