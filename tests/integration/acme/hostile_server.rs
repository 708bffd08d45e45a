//! An ACME server that refuses for a time, answers nonsense, or never ends.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::IntoResponse as _;
use axum::response::Response;
use mailgate_domain::certificates::Attempted;
use mailgate_sandbox::certificates;
use mailgate_server::http::{HttpLimits, Https, serve_tls};
use mailgate_server::shutdown::Shutdown;
use mailgate_server::tls::ServerCertificate;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Alone;

/// What the server does once it is asked for an order.
#[derive(Clone, Copy, Debug)]
enum Conduct {
    RateLimited,
    GarbageDirectory,
    HugeDirectory,
    RedirectedDirectory,
    GarbageOrder,
    HugeOrder,
    WildToken,
    NoAuthorization,
}

struct Server {
    directory_url: String,
    ca_file: PathBuf,
    shutdown: Shutdown,
    _folder: TempDir,
}

impl Server {
    async fn start(conduct: Conduct) -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let folder = TempDir::new().unwrap();
        let files = certificates::ensure(folder.path(), &[], chrono::Utc::now()).unwrap();
        let certificate = ServerCertificate::load(&files.certificate, &files.key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!(
            "https://localhost:{}",
            listener.local_addr().unwrap().port()
        );
        let shutdown = Shutdown::default();
        let of = base.clone();
        let router = Router::new().fallback(async move |uri: Uri| answer(conduct, &of, uri.path()));
        let https = Https::new(Arc::new(certificate), None).unwrap();
        serve_tls(listener, router, HttpLimits::new(100), https, &shutdown);
        Self {
            directory_url: format!("{base}/dir"),
            ca_file: files.ca,
            shutdown,
            _folder: folder,
        }
    }
}

fn answer(conduct: Conduct, base: &str, path: &str) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert("replay-nonce", "bm9uY2U".parse().unwrap());
    headers.insert("location", format!("{base}{path}/1").parse().unwrap());
    let endless = || {
        let piece = axum::body::Bytes::from(vec![b' '; 65_536]);
        let pieces =
            futures_util::stream::repeat_with(move || Ok::<_, std::io::Error>(piece.clone()));
        Body::from_stream(pieces).into_response()
    };
    match (path, conduct) {
        ("/dir", Conduct::GarbageDirectory) => "<html>".into_response(),
        ("/dir", Conduct::HugeDirectory) | ("/order", Conduct::HugeOrder) => endless(),
        ("/dir", Conduct::RedirectedDirectory) => (StatusCode::FOUND, headers, "").into_response(),
        ("/dir", _) => axum::Json(json!({
            "newNonce": format!("{base}/nonce"),
            "newAccount": format!("{base}/account"),
            "newOrder": format!("{base}/order"),
            "revokeCert": format!("{base}/revoke"),
            "keyChange": format!("{base}/key"),
        }))
        .into_response(),
        ("/order", Conduct::RateLimited) => {
            headers.insert("retry-after", "7200".parse().unwrap());
            let problem = json!({
                "type": "urn:ietf:params:acme:error:rateLimited",
                "detail": "too many\r\ncertificates\u{0}",
                "status": 429,
            });
            (StatusCode::TOO_MANY_REQUESTS, headers, axum::Json(problem)).into_response()
        }
        ("/order", Conduct::GarbageOrder) => (headers, "nonsense").into_response(),
        ("/order", Conduct::WildToken | Conduct::NoAuthorization) => {
            let authorizations = match conduct {
                Conduct::WildToken => vec![format!("{base}/authorization")],
                _ => Vec::new(),
            };
            let order = json!({
                "status": "pending",
                "identifiers": [],
                "authorizations": authorizations,
                "finalize": format!("{base}/finalize"),
            });
            (StatusCode::CREATED, headers, axum::Json(order)).into_response()
        }
        ("/authorization", _) => {
            let authorization = json!({
                "status": "pending",
                "identifier": { "type": "dns", "value": "mx.mailgate.test" },
                "challenges": [{
                    "type": "http-01", "status": "pending", "url": format!("{base}/challenge"),
                    "token": "../../etc/passwd",
                }],
            });
            (headers, axum::Json(authorization)).into_response()
        }
        ("/account", _) => {
            let account = json!({ "status": "valid" });
            (StatusCode::CREATED, headers, axum::Json(account)).into_response()
        }
        _ => (headers, "").into_response(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_conduct_ends_in_a_failure_that_waits() {
    for (conduct, word, least) in [
        (
            Conduct::RateLimited,
            "rateLimited: too many  certificates",
            7_200.0,
        ),
        (Conduct::GarbageDirectory, "JSON", 300.0),
        (Conduct::HugeDirectory, "longer than", 300.0),
        (Conduct::RedirectedDirectory, "JSON", 300.0),
        (Conduct::GarbageOrder, "JSON", 300.0),
        (Conduct::HugeOrder, "longer than", 300.0),
        (Conduct::WildToken, "token is malformed", 300.0),
        (Conduct::NoAuthorization, "no authorization", 300.0),
    ] {
        let server = Server::start(conduct).await;
        let alone = Alone::start(&server.directory_url, server.ca_file.clone()).await;
        let before = alone.certificates.of_smtp().shown();
        let stop = CancellationToken::new();
        let attempted = alone.certificates.renew_due(&stop).await.unwrap();
        assert_eq!(attempted, Attempted::Failed, "{conduct:?}");
        let (failures, error, seconds) = alone.trouble().await;
        assert_eq!(failures, 1, "{conduct:?}");
        let error = error.unwrap();
        assert!(error.contains(word), "{conduct:?}: {error}");
        assert!(!error.contains(char::is_control), "{error:?}");
        assert!(
            (least - 60.0..=least * 1.2).contains(&seconds),
            "{conduct:?}: {seconds}"
        );
        let again = alone.certificates.renew_due(&stop).await.unwrap();
        assert_eq!(again, Attempted::Nothing, "{conduct:?}");
        assert!(Arc::ptr_eq(&before, &alone.certificates.of_smtp().shown()));
        server.shutdown.finish().await.unwrap();
    }
}

/// The end of the process breaks an order off, and another gateway may begin one soon.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_broken_off_at_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Server::start(Conduct::RateLimited).await;
    let directory_url = format!("https://localhost:{port}/dir");
    let alone = Alone::start(&directory_url, server.ca_file.clone()).await;
    let stop = CancellationToken::new();
    let silent = async {
        // Taken, and never answered.
        let _held = listener.accept().await.unwrap();
        stop.cancel();
        std::future::pending::<()>().await;
    };
    let attempted = tokio::select! {
        attempted = alone.certificates.renew_due(&stop) => attempted.unwrap(),
        () = silent => unreachable!("it waits for ever"),
    };
    assert_eq!(attempted, Attempted::BrokenOff);
    let (failures, _, seconds) = alone.trouble().await;
    assert_eq!(failures, 0);
    assert!(seconds <= 30.0, "{seconds}");
    server.shutdown.finish().await.unwrap();
}
