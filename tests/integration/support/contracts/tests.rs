//! That what is against a contract is told: a check that finds nothing proves nothing by itself.

use super::*;

const FORM: Option<&str> = Some("application/x-www-form-urlencoded");
const JSON: Option<&str> = Some("application/json");

fn told(found: &[String], what: &str) -> bool {
    found.iter().any(|violation| violation.contains(what))
}

#[test]
fn what_is_against_stripes_interface_is_told() {
    let versions = Contract::stripe_versions();
    let [pinned, newest] = [0, 1].map(|at| Contract::load(&format!("stripe-{}", versions[at])));
    let sessions = |contract: &Contract, body: &str| {
        contract.check("POST", "/v1/checkout/sessions", "", FORM, body.as_bytes())
    };
    let (old, new) = (
        "mode=setup&customer=cus_1&payment_method_types%5B0%5D=card",
        "mode=setup&customer=cus_1&allowed_payment_method_types%5B0%5D=card",
    );
    assert_eq!(sessions(&pinned, old), Vec::<String>::new());
    assert_eq!(sessions(&newest, new), Vec::<String>::new());
    assert!(told(
        &sessions(&newest, old),
        "payment_method_types: there is no such"
    ));
    assert!(told(&sessions(&pinned, new), "no such parameter"));
    let twice =
        "expand%5B%5D=customer&expand%5B%5D=customer.invoice_settings.default_payment_method";
    for contract in [&pinned, &newest] {
        let found = contract.check("GET", "/v1/subscriptions/sub_1", twice, None, b"");
        assert_eq!(found, Vec::<String>::new());
    }
    assert!(told(&sessions(&newest, "mode=sideways"), "none of"));
    for (body, what) in [
        ("customer=c&items[0][quantity]=x", "of another type"),
        (
            "customer=c&trial_settings[end_behavior][missing]=cancel",
            "missing: there is no",
        ),
        (
            "customer=c&trial_settings[end_behavior][missing_payment_method]=end",
            "none of",
        ),
        (
            "customer=c&trial_settings[x]=y",
            "end_behavior: it is required",
        ),
        ("customer=c&payment_behavior=later", "none of"),
    ] {
        let found = pinned.check("POST", "/v1/subscriptions", "", FORM, body.as_bytes());
        assert!(told(&found, what), "{body}: {found:?}");
    }
    let found = pinned.check("GET", "/v1/subscriptions", "status=odd&limit=x", None, b"");
    assert_eq!(found.len(), 2, "{found:?}");
    let found = pinned.check("POST", "/v1/customers/cus_1/cards", "", FORM, b"");
    assert!(told(&found, "no such operation"), "{found:?}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "mostly a table")]
fn what_is_against_googles_and_microsofts_interfaces_is_told() {
    let gmail = Contract::load("gmail");
    let send = "/gmail/v1/users/me/messages/send";
    let upload = "/upload/gmail/v1/users/me/messages/send";
    for (method, path, query, kind, body, what) in [
        ("POST", send, "", JSON, r#"{"raw": 7}"#, "raw: 7 is none"),
        (
            "POST",
            send,
            "",
            JSON,
            r#"{"rawest": "x"}"#,
            "rawest: there is no such",
        ),
        (
            "POST",
            send,
            "",
            Some("text/plain"),
            "x",
            "content of the type",
        ),
        (
            "POST",
            upload,
            "",
            Some("message/rfc822"),
            "x",
            "uploadType: it is required",
        ),
        (
            "GET",
            "/gmail/v1/users/me/messages/1",
            "format=headers",
            None,
            "",
            "format: ",
        ),
        ("GET", "/gmail/v1/users/me/history", "", None, "", ""),
        (
            "GET",
            "/gmail/v1/users/me/messages",
            "maxResults=many",
            None,
            "",
            "of another type",
        ),
        (
            "GET",
            "/gmail/v1/users/me/letters",
            "",
            None,
            "",
            "no such operation",
        ),
    ] {
        let found = gmail.check(method, path, query, kind, body.as_bytes());
        let is_told = if what.is_empty() {
            found.is_empty()
        } else {
            told(&found, what)
        };
        assert!(is_told, "{method} {path}: {found:?}");
    }
    let graph = Contract::load("graph");
    for (path, query, kind, body, what) in [
        (
            "/v1.0/me/messages",
            "",
            JSON,
            r#"{"subject": ["x"]}"#,
            "subject",
        ),
        (
            "/v1.0/me/messages",
            "",
            JSON,
            r#"{"importance": "urgent"}"#,
            "importance",
        ),
        (
            "/v1.0/me/messages",
            "",
            JSON,
            r#"{"toRecipients": [{"address": "a@x.org"}]}"#,
            "address: there is no",
        ),
        (
            "/v1.0/me/messages",
            "",
            Some("text/plain"),
            "not base64",
            "base64",
        ),
        (
            "/v1.0/me/messages/a/send",
            "",
            JSON,
            "{}",
            "no content is known",
        ),
        ("/v1.0/me/messages/a/send", "$now=1", None, "", "$now"),
        (
            "/v1.0/me/messages/a/post",
            "",
            None,
            "",
            "no such operation",
        ),
    ] {
        let found = graph.check("POST", path, query, kind, body.as_bytes());
        assert!(told(&found, what), "{path}: {found:?}");
    }
    assert!(told(
        &graph.check("GET", "/v1.0/me", "$select=a&$pick=b", None, b""),
        "$pick"
    ));
}
