//! Scopes as providers write them: those that a response grants, and those that a refresh requests.

use serde_json::Value;

/// Scopes that responses omit even if they were granted: they give no access to a mailbox.
const UNTOLD: [&str; 4] = ["openid", "email", "profile", "offline_access"];

/// The scopes that a response's `scope` grants, without those that RFC 6749 §3.3 doesn't allow: words between spaces or
/// commas, or a list of them. A comma within a scope that was `asked` for stays. `None` if it has none.
pub(super) fn granted_in(scope: &Value, asked: &[String]) -> Option<Vec<String>> {
    let entries: Vec<&str> = match scope {
        Value::String(words) => vec![words],
        Value::Array(entries) => entries.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let is_scope = |word: &&str| !word.is_empty() && word.bytes().all(|it| it.is_ascii_graphic());
    let words = entries.iter().flat_map(|entry| entry.split_whitespace());
    let words = words.flat_map(|word| {
        let is_whole = asked.iter().any(|asked| asked == word);
        let parts: Vec<&str> = if is_whole {
            vec![word]
        } else {
            word.split(',').collect()
        };
        parts
    });
    Some(words.filter(is_scope).map(str::to_owned).collect())
}

/// The configured scopes that were granted, for a refresh; all of them if that is unknown. A scope that the operator
/// has added since would be refused, and would disconnect working mailboxes.
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

    // ramosbugs/oauth2-rs#86: a list. GitHub joins them by commas.
    #[test]
    fn granted_scopes_in_every_spelling() {
        use serde_json::json;
        let asked = ["mail.read,write".to_owned(), "b".to_owned()];
        for (scope, expected) in [
            (
                json!("a  https://b/c\n\u{0}d \u{fc} e"),
                Some("a https://b/c e"),
            ),
            (json!("a,b"), Some("a b")),
            (json!(" a , b,"), Some("a b")),
            (json!("a\tb,c d"), Some("a b c d")),
            (json!("mail.read,write b"), Some("mail.read,write b")),
            (json!("b,mail.read,write"), Some("b mail.read write")),
            (json!(["a", "b c", "d,e"]), Some("a b c d e")),
            (json!(["a", 7, null, ["b"]]), Some("a")),
            (json!([]), Some("")),
            (json!(""), Some("")),
            (json!(null), None),
            (json!(7), None),
            (json!({ "a": true }), None),
        ] {
            let granted = granted_in(&scope, &asked).map(|granted| granted.join(" "));
            assert_eq!(granted.as_deref(), expected, "{scope}");
        }
    }
}
