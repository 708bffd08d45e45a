//! The authorization endpoint, for users.

use axum::http::header::CONTENT_SECURITY_POLICY;

use super::*;

#[tokio::test]
async fn an_untrusted_request_shows_a_page_and_never_redirects() {
    let server = Server::new();
    for changes in [
        [("client_id", "")],
        [("client_id", "other")],
        [("redirect_uri", "")],
        [("redirect_uri", "http://evil.example/cb")],
        [("redirect_uri", "https://127.0.0.1/cb")],
        [("redirect_uri", "http://127.0.0.1.evil.example/cb")],
        [("redirect_uri", "http://127.0.0.1@evil.example/cb")],
        [("redirect_uri", "http://user@127.0.0.1/cb")],
        [("redirect_uri", "http://127.0.0.1/cb#x")],
        [("redirect_uri", "https://gate.example/cb")],
        [("redirect_uri", "https://gate.example/cb?x=1&y=2")],
        [("redirect_uri", "javascript:alert(1)")],
    ] {
        let query = parameters(&changes) + "&login_hint=ada%40x.test";
        let (response, page) = server.authorize(&query).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{changes:?}");
        assert!(!response.headers().contains_key(LOCATION), "{changes:?}");
        assert!(page.contains("<h1>This request"), "{changes:?}");
    }
    let twice = parameters(&[]) + "&client_id=client&login_hint=a%40b";
    assert_eq!(
        server.authorize(&twice).await.0.status(),
        StatusCode::BAD_REQUEST
    );
}

#[tokio::test]
async fn allowed_redirects() {
    let server = Server::new();
    for uri in [
        "http://localhost:9/x",
        "http://[::1]:9/x?y=z",
        "https://gate.example/cb?x=1",
    ] {
        let query = parameters(&[("redirect_uri", uri), ("login_hint", ADA)]);
        let (response, _) = server.authorize(&query).await;
        assert_eq!(response.status(), StatusCode::FOUND, "{uri}");
        let location = header(&response, "location");
        let separator = if uri.contains('?') { '&' } else { '?' };
        assert!(
            location.starts_with(&format!("{uri}{separator}code=")),
            "{location}"
        );
    }
}

#[tokio::test]
async fn other_faults_are_redirected_with_error_and_state() {
    let server = Server::new();
    for (changes, error) in [
        ([("response_type", "")], "invalid_request"),
        ([("response_type", "token")], "unsupported_response_type"),
        ([("code_challenge", "")], "invalid_request"),
        ([("code_challenge", "short")], "invalid_request"),
        ([("code_challenge_method", "")], "invalid_request"),
        ([("code_challenge_method", "plain")], "invalid_request"),
        ([("scope", "a \"b")], "invalid_scope"),
        ([("login_hint", "deny@sandbox.example")], "access_denied"),
        ([("login_hint", "deny")], "access_denied"),
    ] {
        let (response, _) = server.authorize(&parameters(&changes)).await;
        assert_eq!(response.status(), StatusCode::FOUND, "{changes:?}");
        assert!(header(&response, "location").starts_with(CALLBACK));
        assert_eq!(
            answer(&response, "error").as_deref(),
            Some(error),
            "{changes:?}"
        );
        assert_eq!(answer(&response, "state").as_deref(), Some("s t&te"));
        assert_eq!(answer(&response, "code"), None);
    }
    let (response, _) = server
        .authorize(&(parameters(&[]) + "&scope=x&state=y"))
        .await;
    assert_eq!(
        answer(&response, "error").as_deref(),
        Some("invalid_request")
    );
    assert_eq!(answer(&response, "state"), None);
}

#[tokio::test]
async fn the_page_asks_and_its_form_answers() {
    let server = Server::new();
    let (response, page) = server
        .authorize(&parameters(&[("state", "\"><script>")]))
        .await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(page.contains("Continue as ada@sandbox.example</button>"));
    assert!(page.contains(">Deny</button>"));
    assert!(page.contains("&quot;&gt;&lt;script&gt;") && !page.contains("<script"));
    let policy = header(&response, CONTENT_SECURITY_POLICY.as_str());
    assert!(policy.contains("default-src 'none'") && policy.contains("form-action 'self'"));
    let (_, page) = server
        .authorize(&parameters(&[("login_hint", "<i>")]))
        .await;
    assert!(page.contains("value=\"&lt;i&gt;\"") && !page.contains("Continue as"));

    let decide =
        |fields: &[(&str, &str)]| server.post("/oauth/authorize", parameters(fields), None);
    let (response, _) = decide(&[("decision", "continue"), ("address", " bob@x.test ")]).await;
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    assert_eq!(answer(&response, "state").as_deref(), Some("s t&te"));
    let (status, body) = server.exchange(&answer(&response, "code").unwrap()).await;
    assert_eq!(status, StatusCode::OK);
    let (access, _) = tokens(&body);
    assert!(server.authorization.authenticate("Bob@x.test", &access));

    let (response, _) = decide(&[("decision", "deny"), ("address", ADA)]).await;
    assert_eq!(answer(&response, "error").as_deref(), Some("access_denied"));
    let (response, page) = decide(&[("decision", "continue"), ("address", "<b>")]).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(page.contains("That isn&#39;t an address") && !page.contains("<b>"));
    let (response, _) = decide(&[("client_id", "other"), ("address", ADA)]).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
}
