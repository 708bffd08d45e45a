//! The authorization server through its routes.

#![expect(clippy::unwrap_used, reason = "tests")]

mod authorize;
mod token;

use axum::body::{Body, to_bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tower::ServiceExt as _;

use super::*;
use mailgate_types::clock::MovedClock;

const ADA: &str = "ada@sandbox.example";
const CALLBACK: &str = "http://127.0.0.1:8080/oauth/callback";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

struct Server {
    folder: tempfile::TempDir,
    clock: Arc<MovedClock>,
    authorization: Authorization,
}

/// The parameters of a valid request, with changes (an empty value omits one).
fn parameters(changes: &[(&str, &str)]) -> String {
    let mut parameters = vec![
        ("response_type", "code"),
        ("client_id", "client"),
        ("redirect_uri", CALLBACK),
        ("state", "s t&te"),
        ("scope", "openid mail.send"),
        (
            "code_challenge",
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        ),
        ("code_challenge_method", "S256"),
    ];
    for (name, value) in changes {
        parameters.retain(|(known, _)| known != name);
        parameters.push((name, value));
    }
    form(&parameters)
}

fn form(parameters: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(parameters)
        .finish()
}

impl Server {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(MovedClock::default());
        let authorization = open(&folder, &clock);
        Self {
            folder,
            clock,
            authorization,
        }
    }

    fn restarted(self) -> Self {
        let authorization = open(&self.folder, &self.clock);
        Self {
            authorization,
            ..self
        }
    }

    async fn call(&self, request: Request<Body>) -> (Response, String) {
        let response = self.authorization.router().oneshot(request).await.unwrap();
        let (head, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap().to_vec();
        let text = String::from_utf8(bytes).unwrap();
        (Response::from_parts(head, Body::empty()), text)
    }

    async fn authorize(&self, query: &str) -> (Response, String) {
        let uri = format!("/oauth/authorize?{query}");
        self.call(Request::get(uri).body(Body::empty()).unwrap())
            .await
    }

    async fn post(&self, path: &str, body: String, basic: Option<&str>) -> (Response, String) {
        let mut request =
            Request::post(path).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some(basic) = basic {
            request = request.header(AUTHORIZATION, format!("Basic {}", STANDARD.encode(basic)));
        }
        self.call(request.body(Body::from(body)).unwrap()).await
    }

    async fn code(&self, hint: &str) -> String {
        let (response, _) = self.authorize(&parameters(&[("login_hint", hint)])).await;
        assert_eq!(response.status(), StatusCode::FOUND);
        answer(&response, "code").unwrap()
    }

    async fn token(&self, fields: &[(&str, &str)]) -> (StatusCode, Value) {
        let mut all = vec![("client_id", "client"), ("client_secret", "s3cret:&+ü")];
        all.extend_from_slice(fields);
        let (response, body) = self.post("/oauth/token", form(&all), None).await;
        assert_eq!(header(&response, "cache-control"), "no-store");
        (response.status(), serde_json::from_str(&body).unwrap())
    }

    async fn exchange(&self, code: &str) -> (StatusCode, Value) {
        self.token(&[
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
        ])
        .await
    }

    async fn refresh(&self, token: &str) -> (StatusCode, Value) {
        self.token(&[("grant_type", "refresh_token"), ("refresh_token", token)])
            .await
    }

    /// Connects a mailbox and returns its access token and its refresh token.
    async fn connect(&self, mailbox: &str) -> (String, String) {
        let code = self.code(mailbox).await;
        let (status, body) = self.exchange(&code).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        tokens(&body)
    }

    fn accepts(&self, token: &str) -> bool {
        self.authorization.authenticate(ADA, token)
    }
}

fn open(folder: &tempfile::TempDir, clock: &Arc<MovedClock>) -> Authorization {
    Authorization::open(Settings {
        client_id: "client".to_owned(),
        client_secret: SecretString::from("s3cret:&+ü"),
        redirect_uris: vec!["https://gate.example/cb?x=1".to_owned()],
        access_token_seconds: 3600,
        directory: folder.path().join("grants"),
        clock: Arc::clone(clock) as SharedClock,
    })
    .unwrap()
}

fn tokens(body: &Value) -> (String, String) {
    let text = |name: &str| body[name].as_str().unwrap().to_owned();
    (text("access_token"), text("refresh_token"))
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response
        .headers()
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

/// A parameter of the redirect.
fn answer(response: &Response, name: &str) -> Option<String> {
    let url = Url::parse(header(response, LOCATION.as_str())).unwrap();
    url.query_pairs()
        .find(|(found, _)| found == name)
        .map(|(_, value)| value.into_owned())
}
