//! What a request must look like before its fields count.

use reqwest::Method;
use reqwest::header::{ALLOW, CONTENT_TYPE};

use super::{Answer, Caller, anonymous, path};
use crate::support::gateway::Gateway;

const BODY_BYTES: usize = 256 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_a_json_object_of_bounded_size() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let path = path(&gateway.app);
    for (method, path) in [(Method::POST, "/apps"), (Method::PUT, path.as_str())] {
        let to = |media_type: &str, body: Vec<u8>| {
            let request = caller.request(method.clone(), path);
            Answer::to(request.header(CONTENT_TYPE, media_type).body(body))
        };
        let json = "application/json";
        let padded = |length: usize| {
            let mut body = b"{\"name\":\"Padded\"".to_vec();
            body.resize(length - 1, b' ');
            body.push(b'}');
            body
        };
        for (media_type, body, expected) in [
            (
                "text/plain",
                b"{}".to_vec(),
                (415, "unsupported_media_type"),
            ),
            ("", b"{}".to_vec(), (415, "unsupported_media_type")),
            (
                "application/x-www-form-urlencoded",
                b"name=x".to_vec(),
                (415, "unsupported_media_type"),
            ),
            (json, Vec::new(), (400, "malformed_json")),
            (json, b"{".to_vec(), (400, "malformed_json")),
            (json, b"{\"name\":\"x\"}}".to_vec(), (400, "malformed_json")),
            (
                json,
                b"{\"name\":\"\xff\"}".to_vec(),
                (400, "malformed_json"),
            ),
            (json, b"[] x".to_vec(), (400, "malformed_json")),
            (json, b"[]".to_vec(), (422, "invalid_request")),
            (json, b"\"x\"".to_vec(), (422, "invalid_request")),
            (json, b"null".to_vec(), (422, "invalid_request")),
            (json, padded(BODY_BYTES + 1), (413, "payload_too_large")),
            (json, padded(BODY_BYTES * 8), (413, "payload_too_large")),
        ] {
            let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
            let answer = to(media_type, body).await;
            assert_eq!(answer.problem(), expected, "{method} {media_type} {shown}");
        }
        let status = to("application/json; charset=utf-8", padded(BODY_BYTES)).await;
        assert!(matches!(status.status, 200 | 201), "{}", status.body);
    }
    let bare = caller.request(Method::POST, "/apps").body("{}");
    let answer = Answer::to(bare).await;
    assert_eq!(answer.problem(), (415, "unsupported_media_type"));
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_and_methods_that_are_not_there() {
    let gateway = Gateway::start().await;
    let caller = Caller::owner(&gateway).await;
    let app = path(&gateway.app);
    for (method, path, allowed) in [
        (Method::POST, "/me".to_owned(), "GET,HEAD,PATCH"),
        (Method::GET, "/me/reset-api-secret".to_owned(), "POST"),
        (Method::DELETE, "/apps".to_owned(), "GET,HEAD,POST"),
        (Method::PATCH, app.clone(), "DELETE,GET,HEAD,PUT"),
        (Method::POST, format!("{app}/send-key"), "GET,HEAD"),
        (Method::GET, format!("{app}/reset-send-key"), "POST"),
        (Method::PUT, format!("{app}/reset-pushable-key"), "POST"),
    ] {
        let answer = Answer::to(caller.request(method.clone(), &path)).await;
        assert_eq!(answer.problem(), (405, "method_not_allowed"), "{path}");
        let mut names: Vec<&str> = answer.header(ALLOW.as_str()).split(',').collect();
        names.sort_unstable();
        assert_eq!(names.join(","), allowed, "{method} {path}");
    }
    for path in [
        "/app",
        "/me/",
        "/apps/",
        &format!("{app}/"),
        &format!("{app}/nosuch"),
    ] {
        let answer = Answer::to(anonymous(&gateway, Method::GET, path)).await;
        assert_eq!(answer.problem(), (404, "not_found"), "{path}");
    }
}
