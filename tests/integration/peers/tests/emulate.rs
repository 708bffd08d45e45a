//! That npm `emulate` has the shapes which the tests of the Gmail transport take for granted.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::super::emulate::{ACCOUNT, Emulate, OAuthClient, Service};

const CLIENT: OAuthClient<'static> = OAuthClient {
    id: "mailgate-tests",
    secret: "mailgate-tests-secret",
    redirect_uri: "http://127.0.0.1:9/oauth/callback",
};
const CODE_VERIFIER: &str = "a-code-verifier-that-is-always-the-same-in-these-tests";
const SCOPE: &str = "openid email https://www.googleapis.com/auth/gmail.send";
/// A quote, an ampersand and angle brackets, which the page must carry through.
const STATE: &str = "s\"<&amp;>'";

#[tokio::test]
async fn gmail_keeps_what_was_sent_with_a_granted_token() {
    let emulate = Emulate::start(CLIENT).await;
    let tokens = grant(&emulate, &emulate.google, ACCOUNT).await;
    assert_eq!(tokens["expires_in"], 3600);
    assert_eq!(tokens["scope"], SCOPE);
    let access_token = tokens["access_token"].as_str().unwrap();
    let profile = get(&emulate.google.userinfo_url, access_token).await;
    assert_eq!(profile["email"], ACCOUNT);
    assert!(emulate.sent().await.is_empty());

    let head = format!(
        "From: {ACCOUNT}\r\nTo: Bob <bob@example.test>,\r\n eve@example.test\r\n\
         Cc: cc@example.test\r\nBcc: bcc@example.test\r\nSubject: by hand\r\n\r\n"
    );
    let mut in_json = format!("{head}.dots\r\n  \r\n").into_bytes();
    in_json.extend(b"caf\xe9\r\n");
    let uploaded = format!("{head}.dots\r\ncaf\u{e9}  \r\n").into_bytes();

    let api = format!(
        "{}/gmail/v1/users/me/messages/send",
        emulate.google.base_url
    );
    let body = json!({ "raw": URL_SAFE_NO_PAD.encode(&in_json) });
    let request = client().post(api).bearer_auth(access_token).json(&body);
    let by_json = answer(request).await;
    let upload = format!(
        "{}/upload/gmail/v1/users/me/messages/send?uploadType=media",
        emulate.google.base_url
    );
    let request = client().post(upload).bearer_auth(access_token);
    let request = request.header(CONTENT_TYPE, "message/rfc822");
    let by_upload = answer(request.body(uploaded.clone())).await;

    let [by_json, by_upload] = [by_json, by_upload].map(|sent| {
        assert_eq!(sent["labelIds"], json!(["SENT"]));
        assert!(sent["threadId"].is_string(), "{sent}");
        sent["id"].as_str().unwrap().to_owned()
    });
    assert_eq!(emulate.message(&by_json).await, in_json);
    assert_eq!(emulate.message(&by_upload).await, uploaded);
    for id in [&by_json, &by_upload] {
        assert_eq!(
            emulate.recipients(id).await,
            [
                "Bob <bob@example.test>, eve@example.test",
                "cc@example.test",
                "bcc@example.test"
            ]
        );
    }
    assert_eq!(emulate.sent().await, [by_upload, by_json]);
}

#[tokio::test]
async fn google_and_microsoft_grant_refresh_and_revoke() {
    let emulate = Emulate::start(CLIENT).await;
    for service in [&emulate.google, &emulate.microsoft] {
        let tokens = grant(&emulate, service, ACCOUNT).await;
        let refresh_token = tokens["refresh_token"].as_str().unwrap();
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token),
        ];
        let refreshed = answer(post(&service.token_url, &form)).await;
        assert_ne!(refreshed["access_token"], tokens["access_token"]);

        let current = refreshed["refresh_token"].as_str().unwrap_or(refresh_token);
        let form = [("grant_type", "refresh_token"), ("refresh_token", current)];
        let revoked = post(&service.revoke_url, &[("token", current)]);
        assert!(revoked.send().await.unwrap().status().is_success());
        let refused = post(&service.token_url, &form).send().await.unwrap();
        assert_eq!(refused.status(), 400);
        let refused: Value = refused.json().await.unwrap();
        assert_eq!(refused["error"], "invalid_grant");
    }
    let other = grant(&emulate, &emulate.google, "testuser@gmail.com").await;
    let access_token = other["access_token"].as_str().unwrap();
    let profile = get(&emulate.google.userinfo_url, access_token).await;
    assert_eq!(profile["email"], "testuser@gmail.com");

    let tokens = grant(&emulate, &emulate.microsoft, ACCOUNT).await;
    let access_token = tokens["access_token"].as_str().unwrap();
    let profile = get(&emulate.microsoft.userinfo_url, access_token).await;
    assert_eq!(profile["email"], ACCOUNT);
    let me = format!("{}/v1.0/me", emulate.microsoft.base_url);
    assert_eq!(get(&me, access_token).await["mail"], ACCOUNT);
}

/// Connects `account` in a browser, and exchanges the code.
async fn grant(emulate: &Emulate, service: &Service, account: &str) -> Value {
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(CODE_VERIFIER));
    let request = Url::parse_with_params(
        &service.authorize_url,
        [
            ("response_type", "code"),
            ("client_id", CLIENT.id),
            ("redirect_uri", CLIENT.redirect_uri),
            ("scope", SCOPE),
            ("state", STATE),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ],
    );
    let callback = emulate.authorize(request.unwrap().as_str(), account).await;
    assert!(callback.starts_with(CLIENT.redirect_uri), "{callback}");
    let callback = Url::parse(&callback).unwrap();
    let parameter = |name: &str| {
        let (_, value) = callback.query_pairs().find(|(it, _)| it == name).unwrap();
        value.into_owned()
    };
    assert_eq!(parameter("state"), STATE);
    let code = parameter("code");
    let form = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", CLIENT.redirect_uri),
    ];
    let mut wrong = form.to_vec();
    wrong.push(("code_verifier", "another"));
    let refused = post(&service.token_url, &wrong).send().await.unwrap();
    assert_eq!(refused.status(), 400);
    let mut right = form.to_vec();
    right.push(("code_verifier", CODE_VERIFIER));
    answer(post(&service.token_url, &right)).await
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

fn post(url: &str, form: &[(&str, &str)]) -> reqwest::RequestBuilder {
    let mut form = form.to_vec();
    form.push(("client_id", CLIENT.id));
    form.push(("client_secret", CLIENT.secret));
    client().post(url).form(&form)
}

async fn get(url: &str, access_token: &str) -> Value {
    answer(client().get(url).bearer_auth(access_token)).await
}

async fn answer(request: reqwest::RequestBuilder) -> Value {
    let response = request.send().await.unwrap();
    let status = response.status();
    let body = response.text().await.unwrap();
    assert!(status.is_success(), "{status}: {body}");
    serde_json::from_str(&body).unwrap()
}
