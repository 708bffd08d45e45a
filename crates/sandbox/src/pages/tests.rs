//! The routes over an inbox in a temporary folder.

#![expect(clippy::unwrap_used, reason = "tests")]

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request};
use chrono::Utc;
use tower::ServiceExt as _;

use super::*;

const MAIL: &[u8] = b"From: a@x.test\r\nSubject: <script>alert(1)</script>\r\n\r\n<b>body</b>\r\n";

struct Kept {
    _folder: tempfile::TempDir,
    inbox: Inbox,
    switches: Switches,
}

impl Kept {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let inbox = Inbox::open(folder.path()).unwrap();
        Self {
            _folder: folder,
            inbox,
            switches: Switches::default(),
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
        self.ask(request.body(Body::empty()).unwrap()).await
    }

    /// Sends a form, or JSON.
    async fn send(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: &'static str,
    ) -> (Response, Vec<u8>) {
        let request = Request::builder().method(method).uri(path);
        let request = request
            .header("sec-fetch-site", "same-origin")
            .header(CONTENT_TYPE, kind);
        self.ask(request.body(Body::from(body)).unwrap()).await
    }

    async fn ask(&self, request: Request<Body>) -> (Response, Vec<u8>) {
        let router = router(self.inbox.clone(), self.switches.clone());
        let response = router.oneshot(request).await.unwrap();
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
    let (response, page) = Kept::new().page("/").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(page.contains("Nothing has arrived yet"));
    assert!(page.contains("<meta http-equiv=\"refresh\" content=\"5\">"));
    for (recipient, _) in rows::FAULTS {
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
    let site = Kept::new();
    let first = site.add("").await;
    let second = site.add("b@x.test").await;
    let (_, page) = site.page("/").await;
    assert!(page.find(&second).unwrap() < page.find(&first).unwrap());
    assert!(page.contains("2 messages"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("title=\"&lt;&gt; → &quot;&lt;i&gt;&quot;@y.test, c@y.test\""));
    assert!(page.contains("<span>&lt;&gt;</span> → <span>&quot;&lt;i&gt;&quot;@y.test + 1</span>"));
    assert!(!page.contains("<script>alert"));
}

#[tokio::test]
async fn the_message_page_shows_source_and_never_reloads() {
    let site = Kept::new();
    let id = site.add("b@x.test").await;
    let (response, page) = site.page(&format!("/messages/{id}?tab=source")).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(page.contains("&lt;b&gt;body&lt;/b&gt;"));
    assert!(page.contains(&format!("href=\"/messages/{id}/raw\"")));
    assert!(page.contains("<title>&lt;script&gt;alert(1)&lt;/script&gt;</title>"));
    assert!(!page.contains("http-equiv=\"refresh\""));
    assert!(!page.contains("<script>"));
}

#[tokio::test]
async fn a_message_is_read_once_its_page_is_opened() {
    let site = Kept::new();
    let first = site.add("a@x.test").await;
    let second = site.add("b@x.test").await;
    let unread = |page: &str| page.matches("class=\"unread\"").count();
    let (_, page) = site.page("/").await;
    assert_eq!(unread(&page), 2);
    assert!(page.contains(" · 2 unread"), "{page}");
    // The parts alone are no reading.
    site.page(&format!("/messages/{first}/raw")).await;
    let (_, page) = site.page(&format!("/messages/{first}")).await;
    assert_eq!(unread(&page), 1);
    assert!(page.contains(&format!("href=\"/messages/{first}\" aria-current=\"true\"")));
    // The list by which that page is kept up to date marks it too.
    assert!(page.contains(&format!("data-live-from=\"/?q=&amp;id={first}\"")));
    let (_, page) = site.page(&format!("/?q=&id={first}")).await;
    assert!(page.contains(&format!("href=\"/messages/{first}\" aria-current=\"true\"")));

    let form = "application/x-www-form-urlencoded";
    let (response, _) = site.send(Method::POST, "/messages/read", form, "").await;
    assert_eq!(
        (response.status(), header(&response, "location")),
        (StatusCode::SEE_OTHER, "/")
    );
    assert_eq!(site.inbox.unread(), 0);
    assert!(site.inbox.find(&second).unwrap().read);
}

#[tokio::test]
async fn switches_by_form_and_by_json() {
    let site = Kept::new();
    let id = site.add("a@x.test").await;
    let (form, json) = ("application/x-www-form-urlencoded", "application/json");
    let (_, page) = site.page("/").await;
    for choice in switch::CHOICES {
        assert!(page.contains(&format!("value=\"{}\"", choice.effect.name())));
    }
    let (response, _) = site
        .send(Method::POST, "/switches", form, "effect=bounce&back=nobody")
        .await;
    assert_eq!(header(&response, "location"), "/");
    let (_, page) = site.page("/").await;
    assert!(page.contains("The next message will bounce."), "{page}");
    assert!(page.contains("<button>Cancel</button>"));
    let (_, bytes) = site.call(Method::GET, "/switches").await;
    assert_eq!(bytes, br#"{"effect":"bounce","repeat":false}"#);

    let fields: &'static str = format!("effect=fail&repeat=yes&back={id}").leak();
    let (response, _) = site.send(Method::POST, "/switches", form, fields).await;
    assert_eq!(header(&response, "location"), format!("/messages/{id}"));
    let (_, page) = site.page("/").await;
    assert!(page.contains("Every message fails (550 5.1.1)."), "{page}");
    site.send(Method::POST, "/switches", form, "").await;
    assert_eq!(site.switches.get(), crate::switches::Setting::default());

    let set = r#"{"effect":"reply","repeat":true}"#;
    let (response, bytes) = site.send(Method::PUT, "/switches", json, set).await;
    assert_eq!(
        (response.status(), bytes.as_slice()),
        (StatusCode::OK, set.as_bytes())
    );
    for (body, status) in [
        (r#"{"effect":"explode"}"#, 422),
        (r#"{"effect":"fail","twice":true}"#, 422),
        ("{", 400),
    ] {
        let (response, _) = site.send(Method::PUT, "/switches", json, body).await;
        assert_eq!(response.status(), status, "{body}");
    }
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        let (response, _) = site.call_from("cross-site", method, "/switches").await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
    }
    assert!(site.switches.get().repeat);
    let (response, _) = site.call(Method::DELETE, "/switches").await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    let (_, bytes) = site.call(Method::GET, "/switches").await;
    assert_eq!(bytes, br#"{"effect":null,"repeat":false}"#);
}

#[tokio::test]
async fn many_messages_recipients_and_long_subjects_make_no_long_page() {
    let site = Kept::new();
    let mail: &'static [u8] = format!("Subject: {}\r\n\r\n", "ä".repeat(500_000))
        .leak()
        .as_bytes();
    let to: Vec<String> = (0..1_000)
        .map(|number| format!("{number}@y.test"))
        .collect();
    for _ in 0..150 {
        let added = site
            .inbox
            .add("ada@x.test", "a@x.test", &to, Utc::now(), mail);
        added.await.unwrap();
    }
    let (_, page) = site.page("/").await;
    assert!(page.len() < 600_000, "{}", page.len());
    assert!(page.contains("0@y.test + 999<"));
    assert!(page.contains("19@y.test and 980 more"));
    assert!(page.contains("150 messages, newest first; the newest 100 are shown"));
}

#[tokio::test]
async fn json_list_raw_bytes_and_clearing() {
    let site = Kept::new();
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
    assert_eq!(listed[1]["read"], false);
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
    let site = Kept::new();
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
    let site = Kept::new();
    let id = site.add_mail("a@x.test", RICH).await;
    let (response, page) = site.page(&format!("/messages/{id}")).await;
    let policy = header(&response, CONTENT_SECURITY_POLICY);
    assert!(policy.contains("; frame-src 'self'"), "{policy}");
    assert!(!page.contains("<script>"), "{page}");
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
    let site = Kept::new();
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
    let site = Kept::new();
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
    let site = Kept::new();
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
