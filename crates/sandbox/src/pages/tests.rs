//! The routes over an inbox in a temporary folder.

#![expect(clippy::unwrap_used, reason = "tests")]

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request};
use chrono::Utc;
use tower::ServiceExt as _;

use super::*;

const MAIL: &[u8] = b"From: a@x.test\r\nSubject: <script>alert(1)</script>\r\n\r\n<b>body</b>\r\n";

struct Site {
    _folder: tempfile::TempDir,
    inbox: Inbox,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let inbox = Inbox::open(folder.path()).unwrap();
        Self {
            _folder: folder,
            inbox,
        }
    }

    async fn add(&self, from: &str) -> String {
        let to = ["\"<i>\"@y.test".to_owned(), "c@y.test".to_owned()];
        let added = self.inbox.add("ada@x.test", from, &to, Utc::now(), MAIL);
        added.await.unwrap().id.clone()
    }

    async fn call(&self, method: Method, path: &str) -> (Response, Vec<u8>) {
        let request = Request::builder().method(method).uri(path);
        let response = router(self.inbox.clone())
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        let (head, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap().to_vec();
        (Response::from_parts(head, Body::empty()), bytes)
    }

    async fn page(&self, path: &str) -> (Response, String) {
        let (response, bytes) = self.call(Method::GET, path).await;
        (response, String::from_utf8(bytes).unwrap())
    }
}

fn header(response: &Response, name: impl axum::http::header::AsHeaderName) -> &str {
    response
        .headers()
        .get(name)
        .map_or("", |v| v.to_str().unwrap())
}

#[tokio::test]
async fn the_list_page_is_friendly_when_empty_and_refreshes() {
    let (response, page) = Site::new().page("/").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(page.contains("Nothing has arrived yet"));
    assert!(page.contains("<meta http-equiv=\"refresh\" content=\"5\">"));
    for (recipient, _) in FAULTS {
        assert!(page.contains(recipient), "{recipient}");
    }
    let policy = header(&response, CONTENT_SECURITY_POLICY);
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-")
            && policy.contains("; form-action 'none'")
    );
    assert_eq!(header(&response, X_CONTENT_TYPE_OPTIONS), "nosniff");
}

#[tokio::test]
async fn the_list_page_escapes_and_shows_newest_first() {
    let site = Site::new();
    let first = site.add("").await;
    let second = site.add("b@x.test").await;
    let (_, page) = site.page("/").await;
    assert!(page.find(&second).unwrap() < page.find(&first).unwrap());
    assert!(page.contains("2 messages"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("&lt;&gt; → &quot;&lt;i&gt;&quot;@y.test, c@y.test"));
    assert!(!page.contains("<script>alert"));
}

#[tokio::test]
async fn the_message_page_shows_source_and_never_refreshes() {
    let site = Site::new();
    let id = site.add("b@x.test").await;
    let (response, page) = site.page(&format!("/messages/{id}")).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(page.contains("&lt;b&gt;body&lt;/b&gt;"));
    assert!(page.contains(&format!("href=\"/messages/{id}/raw\"")));
    assert!(!page.contains("http-equiv=\"refresh\""));
    assert!(!page.contains("<script"));
}

#[tokio::test]
async fn json_list_raw_bytes_and_clearing() {
    let site = Site::new();
    let first = site.add("a@x.test").await;
    let second = site.add("b@x.test").await;
    let (response, bytes) = site.call(Method::GET, "/messages").await;
    assert_eq!(header(&response, CONTENT_TYPE), "application/json");
    let listed: Vec<serde_json::Value> = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0]["id"], second.as_str());
    assert_eq!(listed[1]["id"], first.as_str());
    assert_eq!(listed[1]["mailbox"], "ada@x.test");
    assert_eq!(listed[1]["envelope_from"], "a@x.test");
    assert_eq!(listed[1]["envelope_to"][1], "c@y.test");
    assert_eq!(listed[1]["size"], MAIL.len());
    assert!(listed[1]["received_at"].is_string());
    let (_, bytes) = site.call(Method::GET, "/messages?limit=1").await;
    let listed: Vec<serde_json::Value> = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(listed.len(), 1);

    let (response, bytes) = site
        .call(Method::GET, &format!("/messages/{first}/raw"))
        .await;
    assert_eq!(bytes, MAIL);
    assert_eq!(header(&response, CONTENT_TYPE), "message/rfc822");
    assert_eq!(header(&response, X_CONTENT_TYPE_OPTIONS), "nosniff");

    let (response, _) = site.call(Method::DELETE, "/messages").await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    let (_, bytes) = site.call(Method::GET, "/messages").await;
    assert_eq!(bytes, b"[]");
}

#[tokio::test]
async fn unknown_ids_are_not_found() {
    let site = Site::new();
    for path in [
        "/messages/x",
        "/messages/x/raw",
        "/messages/..%2F..%2Fetc%2Fpasswd/raw",
    ] {
        let (response, _) = site.call(Method::GET, path).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
    }
}
