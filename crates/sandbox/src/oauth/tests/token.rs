//! The endpoints that the client calls, and the handle.

use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;

use super::*;

#[tokio::test]
async fn a_code_becomes_tokens() {
    let server = Server::new();
    let code = server.code(ADA).await;
    let (status, body) = server.exchange(&code).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(body["token_type"], "Bearer");
    assert_eq!(body["expires_in"], 3600);
    assert_eq!(body["scope"], "openid mail.send");
    let (access, refresh) = tokens(&body);
    assert!(server.accepts(&access));
    assert!(!server.accepts(&refresh), "a refresh token opens nothing");
    assert!(!server.authorization.authenticate("bob@x.test", &access));
    server.clock.advance(TimeDelta::seconds(3600));
    assert!(!server.accepts(&access), "it has expired");

    let code = server.code("partial@sandbox.example").await;
    let (_, body) = server.exchange(&code).await;
    assert_eq!(body["scope"], "openid");
}

#[tokio::test]
async fn a_code_used_twice_takes_back_what_it_gave() {
    let server = Server::new();
    let code = server.code(ADA).await;
    let (_, body) = server.exchange(&code).await;
    let (access, refresh) = tokens(&body);
    // Tokens issued since are revoked too.
    let (_, body) = server.refresh(&refresh).await;
    let (second_access, second_refresh) = tokens(&body);
    server.clock.advance(TimeDelta::seconds(120));
    let (status, body) = server.exchange(&code).await;
    assert_eq!(
        (status, body["error"].as_str()),
        (StatusCode::BAD_REQUEST, Some("invalid_grant"))
    );
    assert!(!server.accepts(&access) && !server.accepts(&second_access));
    assert_eq!(
        server.refresh(&second_refresh).await.1["error"],
        "invalid_grant"
    );
}

#[tokio::test]
async fn codes_that_are_refused() {
    let server = Server::new();
    let code = server.code(ADA).await;
    let good = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", CALLBACK),
        ("code_verifier", VERIFIER),
    ];
    let wrong_verifier = "w".repeat(43);
    for (name, value, error) in [
        ("grant_type", "", "invalid_request"),
        ("grant_type", "password", "unsupported_grant_type"),
        ("code", "", "invalid_request"),
        ("code", "guessed", "invalid_grant"),
        ("redirect_uri", "", "invalid_request"),
        (
            "redirect_uri",
            "http://127.0.0.1:8081/oauth/callback",
            "invalid_grant",
        ),
        ("code_verifier", "", "invalid_request"),
        ("code_verifier", "short", "invalid_request"),
        ("code_verifier", &wrong_verifier, "invalid_grant"),
        ("client_secret", "wrong", "invalid_request"),
    ] {
        let mut fields = good.to_vec();
        fields.retain(|(known, _)| *known != name);
        fields.push((name, value));
        let (status, body) = server.token(&fields).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{name}={value}");
        assert_eq!(body["error"], error, "{name}={value}: {body}");
    }
    server.clock.advance(TimeDelta::seconds(60));
    assert_eq!(server.exchange(&code).await.1["error"], "invalid_grant");
}

#[tokio::test]
async fn the_client_proves_itself_by_header_or_form() {
    let server = Server::new();
    let (_, refresh) = server.connect(ADA).await;
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh.as_str()),
    ];
    for (basic, extra) in [
        (None, vec![]),
        (None, vec![("client_id", "client")]),
        (
            None,
            vec![("client_id", "client"), ("client_secret", "wrong")],
        ),
        (
            None,
            vec![("client_id", "other"), ("client_secret", "s3cret:&+ü")],
        ),
        (Some("client:wrong"), vec![]),
        (Some("no colon"), vec![]),
    ] {
        let body = form(&[&fields[..], &extra].concat());
        let (response, body) = server.post("/oauth/token", body, basic).await;
        assert_eq!(
            response.status(),
            StatusCode::UNAUTHORIZED,
            "{basic:?} {extra:?}"
        );
        assert!(header(&response, "www-authenticate").starts_with("Basic"));
        assert!(body.contains("\"invalid_client\""));
    }
    let both = form(&[&fields[..], &[("client_secret", "x")]].concat());
    let (response, body) = server.post("/oauth/token", both, Some("client:x")).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert!(body.contains("\"invalid_request\""));

    // Form-encoded inside the header: RFC 6749 §2.3.1.
    let basic = Some("client:s3cret%3A%26%2B%C3%BC");
    let (response, _) = server.post("/oauth/token", form(&fields), basic).await;
    assert_eq!(response.status(), StatusCode::OK);

    let request = Request::post("/oauth/token")
        .header(CONTENT_TYPE, "application/json")
        .body(Body::from("{}"));
    let (response, body) = server.call(request.unwrap()).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert!(body.contains("\"invalid_request\""));
}

#[tokio::test]
async fn a_refresh_token_dies_at_its_use() {
    let server = Server::new();
    let (access, refresh) = server.connect(ADA).await;
    let (status, body) = server.refresh(&refresh).await;
    assert_eq!(status, StatusCode::OK);
    let (second_access, second_refresh) = tokens(&body);
    assert_ne!(refresh, second_refresh);
    assert!(server.accepts(&access) && server.accepts(&second_access));
    let (status, body) = server.refresh(&refresh).await;
    assert_eq!(
        (status, body["error"].as_str()),
        (StatusCode::BAD_REQUEST, Some("invalid_grant"))
    );
    assert_eq!(server.refresh(&access).await.1["error"], "invalid_grant");
    assert_eq!(server.authorization.refreshes(), 1);

    let narrowed = |scope: &'static str| {
        let token = second_refresh.clone();
        let server = &server;
        async move {
            let fields = [
                ("grant_type", "refresh_token"),
                ("refresh_token", token.as_str()),
                ("scope", scope),
            ];
            server.token(&fields).await.1
        }
    };
    assert_eq!(narrowed("openid admin").await["error"], "invalid_scope");
    assert_eq!(narrowed("openid").await["scope"], "openid");
    assert_eq!(server.authorization.refreshes(), 2);
}

#[tokio::test]
async fn grants_survive_a_restart_and_no_token_is_on_the_disk() {
    let server = Server::new();
    let (access, refresh) = server.connect(ADA).await;
    let server = server.restarted();
    assert!(server.accepts(&access));
    let (status, body) = server.refresh(&refresh).await;
    assert_eq!(status, StatusCode::OK);
    let (_, second) = tokens(&body);
    let server = server.restarted();
    assert_eq!(server.refresh(&refresh).await.1["error"], "invalid_grant");
    let files: Vec<_> = std::fs::read_dir(server.folder.path().join("grants"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert_eq!(files.len(), 1);
    for token in [&access, &refresh, &second] {
        // 32 random bytes in base64, after a prefix.
        let (_, secret) = token.split_at(token.len() - 43);
        assert!(!files[0].contains(secret));
    }
    assert_eq!(server.refresh(&second).await.0, StatusCode::OK);
}

#[tokio::test]
async fn the_handle_expires_and_withdraws() {
    let server = Server::new();
    let (access, refresh) = server.connect(ADA).await;
    let (bob, _) = server.connect("bob@x.test").await;
    server.authorization.expire_access_tokens().await.unwrap();
    assert!(!server.accepts(&access));
    assert!(!server.authorization.authenticate("bob@x.test", &bob));
    let (status, body) = server.refresh(&refresh).await;
    assert_eq!(status, StatusCode::OK);
    let (access, refresh) = tokens(&body);
    assert!(server.accepts(&access));

    let (_, other) = server.connect(ADA).await;
    let code = server.code(ADA).await;
    server
        .authorization
        .withdraw("ADA@sandbox.example")
        .await
        .unwrap();
    let server = server.restarted();
    assert!(!server.accepts(&access));
    assert_eq!(server.refresh(&refresh).await.1["error"], "invalid_grant");
    assert_eq!(server.refresh(&other).await.1["error"], "invalid_grant");
    assert_eq!(server.exchange(&code).await.1["error"], "invalid_grant");
}

#[tokio::test]
async fn revocation() {
    let server = Server::new();
    let basic = Some("client:s3cret%3A%26%2B%C3%BC");
    let revoke = |token: String| {
        let server = &server;
        async move {
            let form = form(&[("token", &token)]);
            server.post("/oauth/revoke", form, basic).await.0.status()
        }
    };
    let (access, refresh) = server.connect(ADA).await;
    assert_eq!(revoke(access.clone()).await, StatusCode::OK);
    assert!(!server.accepts(&access));
    let (_, body) = server.refresh(&refresh).await;
    let (access, refresh) = tokens(&body);
    assert_eq!(revoke(refresh.clone()).await, StatusCode::OK);
    assert!(!server.accepts(&access), "the grant is gone");
    assert_eq!(server.refresh(&refresh).await.1["error"], "invalid_grant");
    assert_eq!(revoke(refresh).await, StatusCode::OK, "RFC 7009 §2.2");
    assert_eq!(revoke(String::new()).await, StatusCode::BAD_REQUEST);
    let (response, _) = server
        .post("/oauth/revoke", "token=x".to_owned(), None)
        .await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn userinfo_tells_the_address() {
    let server = Server::new();
    let (access, refresh) = server.connect(ADA).await;
    let ask = |credentials: Option<String>| {
        let mut request = Request::get("/oauth/userinfo");
        if let Some(credentials) = credentials {
            request = request.header(AUTHORIZATION, credentials);
        }
        server.call(request.body(Body::empty()).unwrap())
    };
    let (response, body) = ask(Some(format!("bearer {access}"))).await;
    assert_eq!(response.status(), StatusCode::OK);
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["email"], ADA);
    assert_eq!(body["email_verified"], true);
    assert!(body["sub"].as_str().is_some_and(|sub| !sub.is_empty()));
    for (credentials, challenge) in [
        (None, "Bearer realm=\"sandbox\""),
        (
            Some(format!("Bearer {refresh}")),
            "Bearer realm=\"sandbox\", error=\"invalid_token\"",
        ),
        (Some(format!("Basic {access}")), "Bearer realm=\"sandbox\""),
    ] {
        let (response, _) = ask(credentials).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert!(header(&response, "www-authenticate").starts_with(challenge));
    }
}

#[test]
fn the_example_of_rfc_7636_appendix_b() {
    assert_eq!(
        URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER)),
        "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    );
}
