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
        self.add_mail(from, MAIL).await
    }

    async fn add_mail(&self, from: &str, mail: &'static [u8]) -> String {
        let to = ["\"<i>\"@y.test".to_owned(), "c@y.test".to_owned()];
        let added = self.inbox.add("ada@x.test", from, &to, Utc::now(), mail);
        added.await.unwrap().id.clone()
    }

    async fn call(&self, method: Method, path: &str) -> (Response, Vec<u8>) {
        self.call_from("none", method, path).await
    }

    /// Sends a request like a browser on a page of this site, or of another.
    async fn call_from(&self, site: &str, method: Method, path: &str) -> (Response, Vec<u8>) {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("sec-fetch-site", site);
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
    for (recipient, _) in list::FAULTS {
        assert!(page.contains(recipient), "{recipient}");
    }
    let policy = header(&response, CONTENT_SECURITY_POLICY);
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-")
            && policy.contains("; form-action 'self'")
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

const RICH: &[u8] = b"From: a@x.test\r\nSubject: Rich\r\nMIME-Version: 1.0\r\n\
Content-Type: multipart/mixed; boundary=b\r\n\r\n\
--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n\
 <!DOCTYPE html><html><head><title>t</title></head><body><script>alert(1)</script>\
<img src=\"cid:logo@x\"><a href=\"https://x.test/\">link</a></body></html>\r\n\
--b\r\nContent-Type: IMAGE/PNG; name=\"logo.png\"\r\nContent-ID: <logo@x>\r\nContent-Transfer-Encoding: base64\r\n\r\nAAEC\r\n\
--b\r\nContent-Type: text/html; name=\"a\\\"b; =?utf-8?q?=C3=A4?=.html\"\r\nContent-Disposition: attachment\r\n\r\n<b>page</b>\r\n--b--\r\n";

#[tokio::test]
async fn html_comes_for_a_frame_that_runs_nothing() {
    let site = Site::new();
    let id = site.add_mail("a@x.test", RICH).await;
    let (response, page) = site.page(&format!("/messages/{id}")).await;
    let policy = header(&response, CONTENT_SECURITY_POLICY);
    assert!(policy.contains("; frame-src 'self'"), "{policy}");
    assert!(!page.contains("<script"), "{page}");
    assert!(
        page.contains(&format!("src=\"/messages/{id}/html\"")),
        "{page}"
    );

    let (response, html) = site.page(&format!("/messages/{id}/html")).await;
    assert_eq!(response.status(), StatusCode::OK);
    let policy = header(&response, CONTENT_SECURITY_POLICY);
    assert!(
        policy
            .starts_with("sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'")
    );
    assert!(!policy.contains("script"), "{policy}");
    assert!(
        html.trim_start()
            .starts_with("<!DOCTYPE html><base target=\"_blank\"><html>"),
        "{html}"
    );
    assert!(
        html.contains(&format!("<img src=\"/messages/{id}/parts/2\">")),
        "{html}"
    );

    let plain = site.add("a@x.test").await;
    let (response, _) = site.page(&format!("/messages/{plain}/html")).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn attachments_are_stored_whatever_they_say_they_are() {
    let site = Site::new();
    let id = site.add_mail("a@x.test", RICH).await;
    let (response, bytes) = site
        .call(Method::GET, &format!("/messages/{id}/parts/2"))
        .await;
    assert_eq!(bytes, [0, 1, 2]);
    assert_eq!(header(&response, CONTENT_TYPE), "image/png");
    let (response, bytes) = site
        .call(Method::GET, &format!("/messages/{id}/parts/3"))
        .await;
    assert_eq!(bytes, b"<b>page</b>");
    assert_eq!(header(&response, CONTENT_TYPE), "application/octet-stream");
    let disposition = header(&response, CONTENT_DISPOSITION);
    assert!(
        disposition.starts_with("attachment; filename*=UTF-8''a%22b%3B%20"),
        "{disposition}"
    );
    assert_eq!(header(&response, X_CONTENT_TYPE_OPTIONS), "nosniff");
    // The whole message, a missing part, and an invalid number.
    for (number, status) in [
        ("0", 404),
        ("4", 404),
        ("99999999999999999999999", 400),
        ("x", 400),
    ] {
        let (response, _) = site
            .call(Method::GET, &format!("/messages/{id}/parts/{number}"))
            .await;
        assert_eq!(response.status(), status, "{number}");
    }
}

#[tokio::test]
async fn the_page_searches_and_says_what_it_found() {
    let site = Site::new();
    let rich = site.add_mail("r@x.test", RICH).await;
    let plain = site.add("b@x.test").await;
    let (_, page) = site.page("/?q=logo.png").await;
    assert!(page.contains(&rich) && !page.contains(&plain), "{page}");
    assert!(page.contains("1 message with these words, newest first. <a href=\"/\">Show all</a>"));
    let (_, page) = site.page("/?q=%3Cb%3Enobody").await;
    assert!(page.contains("No message contains these words."), "{page}");
    assert!(page.contains("value=\"&lt;b&gt;nobody\""), "{page}");
}

#[tokio::test]
async fn one_is_deleted_and_never_from_another_site() {
    let site = Site::new();
    let first = site.add("a@x.test").await;
    let second = site.add("b@x.test").await;
    for (method, path) in [
        (Method::POST, format!("/messages/{first}/delete")),
        (Method::POST, "/messages/delete".to_owned()),
        (Method::DELETE, "/messages".to_owned()),
        (Method::DELETE, format!("/messages/{first}")),
    ] {
        let (response, _) = site.call_from("cross-site", method, &path).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(site.inbox.count(), 2);
    let path = format!("/messages/{first}/delete");
    for _ in 0..2 {
        let (response, _) = site.call_from("same-origin", Method::POST, &path).await;
        assert_eq!(response.status(), StatusCode::SEE_OTHER);
        assert_eq!(header(&response, "location"), "/");
    }
    assert_eq!(site.inbox.count(), 1);
    let path = format!("/messages/{second}");
    for status in [StatusCode::NO_CONTENT, StatusCode::NOT_FOUND] {
        let (response, _) = site.call(Method::DELETE, &path).await;
        assert_eq!(response.status(), status);
    }
}
