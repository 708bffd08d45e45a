//! Checks that a user granted everything that a mailbox needs. Consent screens let users deselect individual scopes,
//! and providers spell scopes in their own ways in the response.

use mailgate_settings::ProviderKind;

/// Scopes that concern the user's identity or the lifetime of the grant, not access (`OpenID` Connect Core §5.4, §11).
/// Whether they were granted shows in the response itself.
const NOT_NEEDED: [&str; 4] = ["openid", "email", "profile", "offline_access"];

/// Google's spelling of `email` and `profile` in responses.
const GOOGLE_USERINFO: &str = "https://www.googleapis.com/auth/userinfo.";

/// Microsoft: everything that the client is registered for, under whatever names.
const MICROSOFT_DEFAULT: &str = ".default";

/// The scopes that were requested and not granted. `granted` is the `scope` of the response; if it is absent, all were
/// granted (RFC 6749 §5.1).
pub(super) fn missing<'a>(
    kind: ProviderKind,
    asked: &'a [String],
    granted: Option<&[String]>,
) -> Vec<&'a str> {
    let Some(granted) = granted else {
        return Vec::new();
    };
    asked
        .iter()
        .map(String::as_str)
        .filter(|scope| is_needed(kind, scope))
        .filter(|scope| !granted.iter().any(|given| is_same(kind, scope, given)))
        .collect()
}

fn is_needed(kind: ProviderKind, scope: &str) -> bool {
    let is_default = kind == ProviderKind::Microsoft && last_segment(scope) == MICROSOFT_DEFAULT;
    !NOT_NEEDED.contains(&scope.to_ascii_lowercase().as_str())
        && !scope.starts_with(GOOGLE_USERINFO)
        && !is_default
}

/// Microsoft responds with `Mail.Send`, `mail.send` or the full URI for `https://graph.microsoft.com/Mail.Send`. Others
/// also change the case, or return either spelling for the other.
fn is_same(kind: ProviderKind, asked: &str, given: &str) -> bool {
    match kind {
        ProviderKind::Microsoft => last_segment(asked).eq_ignore_ascii_case(last_segment(given)),
        ProviderKind::Google => asked == given,
        ProviderKind::Generic => {
            let whole = |scope: &str| scope.trim_end_matches('/').to_ascii_lowercase();
            let (asked, given) = (whole(asked), whole(given));
            // Different URIs are different scopes, even with the same ending.
            asked == given
                || in_uri(&asked).is_some_and(|name| name == given)
                || in_uri(&given).is_some_and(|name| name == asked)
        }
    }
}

/// The name at the end of a URI's path or fragment, or of a URN; `None` for a scope that is neither.
fn in_uri(scope: &str) -> Option<&str> {
    let (path, separators) = match scope.split_once("://") {
        Some((_, path)) => (path, &['/', '#'][..]),
        None => (scope.strip_prefix("urn:")?, &[':'][..]),
    };
    path.rsplit_once(separators).map(|(_, name)| name)
}

fn last_segment(scope: &str) -> &str {
    scope.rsplit('/').next().unwrap_or(scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_and_not_granted() {
        use ProviderKind::{Generic, Google, Microsoft};
        const SEND: &str = "https://www.googleapis.com/auth/gmail.send";
        const GRAPH: &str = "https://graph.microsoft.com/Mail.Send";
        for (kind, asked, granted, expected) in [
            (Generic, "openid mail.send", None, ""),
            (Generic, "openid mail.send", Some("openid"), "mail.send"),
            (Generic, "openid mail.send", Some("mail.send"), ""),
            // In another case, as URIs, and by the last part of a URI.
            (Generic, "mail.send", Some("Mail.Send"), ""),
            (
                Generic,
                "Mail.Send",
                Some("https://mail.x.example/scopes/mail.send"),
                "",
            ),
            (
                Generic,
                "https://x.example/auth/mail.send",
                Some("mail.send"),
                "",
            ),
            (
                Generic,
                "https://x.example/mail/",
                Some("https://X.example/mail"),
                "",
            ),
            (
                Generic,
                "https://x.example/auth#mail.send",
                Some("MAIL.SEND"),
                "",
            ),
            (Generic, "mail.send", Some("urn:x:mail.send"), ""),
            (Generic, "mail.send", Some("mail.send.all"), "mail.send"),
            (Generic, "mail.send", Some("x/mail.send"), "mail.send"),
            (Generic, "mail.send", Some("api:mail.send"), "mail.send"),
            (
                Generic,
                "x.example",
                Some("https://x.example/"),
                "x.example",
            ),
            (
                Generic,
                "https://x.example/a/read",
                Some("https://x.example/b/read"),
                "https://x.example/a/read",
            ),
            (
                Google,
                "openid https://mail.google.com/",
                Some("https://mail.google.com"),
                "https://mail.google.com/",
            ),
            (Generic, "openid email profile offline_access", Some(""), ""),
            (Generic, "a b c", Some("c a"), "b"),
            (
                Google,
                "openid email https://mail.google.com/",
                Some("https://www.googleapis.com/auth/userinfo.email openid"),
                "https://mail.google.com/",
            ),
            (
                Google,
                "openid https://www.googleapis.com/auth/userinfo.email https://www.googleapis.com/auth/gmail.send",
                Some("email https://www.googleapis.com/auth/gmail.send"),
                "",
            ),
            (
                Google,
                SEND,
                Some("https://www.googleapis.com/auth/gmail.readonly"),
                SEND,
            ),
            (Microsoft, GRAPH, Some("openid Mail.Send"), ""),
            (Microsoft, GRAPH, Some(GRAPH), ""),
            (
                Microsoft,
                "https://outlook.office.com/SMTP.Send",
                Some("https://outlook.office.com/smtp.send"),
                "",
            ),
            (Microsoft, GRAPH, Some("Mail.ReadWrite"), GRAPH),
            (
                Microsoft,
                "https://graph.microsoft.com/.default",
                Some("Mail.Send"),
                "",
            ),
        ] {
            let list = |text: &str| -> Vec<String> {
                text.split_whitespace().map(str::to_owned).collect()
            };
            let (asked, granted) = (list(asked), granted.map(list));
            let missing = missing(kind, &asked, granted.as_deref());
            assert_eq!(missing, list(expected), "{kind:?} {asked:?} {granted:?}");
        }
    }
}
