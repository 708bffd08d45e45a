//! A subscriber at the REST interface, and the form that every answer of it has.

use mailgate_domain::accounts::CreatedApp;
use mailgate_types::email_address::EmailAddress;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use super::gateway::{Gateway, OPERATOR};

/// An answer of the REST interface.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    /// Sends the request; the form of any answer is asserted here.
    pub async fn to(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.unwrap();
        let media_type = headers.get(CONTENT_TYPE).map(|it| it.to_str().unwrap());
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let request_id = headers["x-request-id"].to_str().unwrap();
        if status == StatusCode::NO_CONTENT {
            assert_eq!((media_type, text.as_str()), (None, ""));
        } else if status.is_success() {
            assert_eq!(media_type, Some("application/json"), "{status}: {text}");
        } else {
            let expected = Some("application/problem+json");
            assert_eq!(media_type, expected, "{status}: {text}");
            assert_eq!(body["request_id"], request_id, "{text}");
            assert_eq!(body["status"], status.as_u16(), "{text}");
        }
        Self {
            status: status.as_u16(),
            headers,
            body,
        }
    }

    /// The body of a success.
    pub fn success(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }

    pub fn problem(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or_default())
    }

    /// The fields that a 422 names, in alphabetical order.
    pub fn wrong_fields(&self) -> Vec<&str> {
        assert_eq!(self.problem(), (422, "invalid_request"), "{}", self.body);
        let errors = self.body["errors"].as_array().into_iter().flatten();
        let mut names: Vec<&str> = errors.map(|error| text(error, "field")).collect();
        names.sort_unstable();
        names
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

/// A subscriber at a gateway.
pub struct Caller<'a> {
    pub gateway: &'a Gateway,
    pub secret: String,
}

impl<'a> Caller<'a> {
    /// The one that owns the gateway's app.
    pub async fn owner(gateway: &'a Gateway) -> Self {
        let accounts = &gateway.daemon.accounts;
        let credentials = accounts.app_credentials(gateway.app.id).await.unwrap();
        let secret = credentials.unwrap().api_secret;
        let secret = secret.expose().to_owned();
        Self { gateway, secret }
    }

    /// A further one, without apps.
    pub async fn another(gateway: &'a Gateway, label: &str) -> Self {
        let email = EmailAddress::parse("another@example.com").unwrap();
        let accounts = &gateway.daemon.accounts;
        let created = accounts.sign_up(label, &email, OPERATOR);
        let secret = created.await.unwrap().api_secret.expose().to_owned();
        Self { gateway, secret }
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        anonymous(self.gateway, method, path).header("x-api-secret", &self.secret)
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::to(self.request(Method::POST, path).json(body)).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        Answer::to(self.request(Method::PUT, path).json(body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::DELETE, path)).await
    }

    /// `POST` without a body.
    pub async fn reset(&self, path: &str) -> Answer {
        Answer::to(self.request(Method::POST, path)).await
    }

    /// A new app of this name.
    pub async fn create(&self, name: &str) -> Value {
        let answer = self.post("/apps", &json!({ "name": name })).await;
        answer.success(201)
    }
}

pub fn anonymous(gateway: &Gateway, method: Method, path: &str) -> RequestBuilder {
    let url = format!("{}{path}", gateway.daemon.base_url);
    gateway.http.request(method, url)
}

/// The path of an app.
pub fn path(app: &CreatedApp) -> String {
    format!("/apps/{}", app.pushable_key.expose())
}

/// The names of an object's fields, in alphabetical order.
pub fn names(object: &Value) -> Vec<&str> {
    let object = object.as_object().expect("an object");
    let mut names: Vec<&str> = object.keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Asserts that an object has these fields and no others.
pub fn has_just(object: &Value, mut expected: Vec<&str>) {
    expected.sort_unstable();
    assert_eq!(names(object), expected, "{object}");
}

pub fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name]
        .as_str()
        .unwrap_or_else(|| panic!("{name} is a text of {object}"))
}

/// Asserts ISO 8601 in UTC.
pub fn is_moment(text: &str) {
    assert!(text.ends_with('Z'), "{text}");
    assert!(chrono::DateTime::parse_from_rfc3339(text).is_ok(), "{text}");
}
