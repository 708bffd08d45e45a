//! Metrics of requests and of the process: what is answered is counted by its route, and nothing that a stranger sends
//! makes up a series.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::observed::value;
use crate::command_line::process::http_client;
use crate::command_line::serve::replica;
use crate::support::gateway::Gateway;
use crate::support::ports;

async fn scrape(metrics: SocketAddr) -> String {
    let response = http_client().get(format!("http://{metrics}/metrics"));
    response.send().await.unwrap().text().await.unwrap()
}

async fn status(method: Method, url: String) -> u16 {
    let answer = http_client().request(method, url).send().await.unwrap();
    answer.status().as_u16()
}

fn requests(route: &str, method: &str, status: u16) -> String {
    format!(
        "mailgate_http_requests_total{{route=\"{route}\",method=\"{method}\",status=\"{status}\"}}"
    )
}

/// The series of requests, but for the numbers.
fn series(scrape: &str) -> BTreeSet<String> {
    let lines = scrape.lines();
    let of_requests = lines.filter(|line| line.starts_with("mailgate_http_request"));
    let names = of_requests.filter_map(|line| line.rsplit_once(' '));
    names.map(|(name, _)| name.to_owned()).collect()
}

/// What is answered to a request that no client library would send.
async fn raw(http: SocketAddr, line: &str) -> String {
    let mut socket = TcpStream::connect(http).await.unwrap();
    let request = format!("{line} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn requests_are_counted_by_their_route() {
    let gateway = Gateway::start().await;
    let metrics = ports::local_address();
    let mut serve = replica(&gateway)
        .set("METRICS__LISTEN", metrics.to_string())
        .start();
    let http = serve.ready().await.http;
    let key = gateway.app.pushable_key.expose();
    for (method, path, expected, route) in [
        (Method::GET, "/apps".to_owned(), 401, "/apps"),
        (Method::POST, "/apps".to_owned(), 401, "/apps"),
        (
            Method::GET,
            "/openapi.json".to_owned(),
            200,
            "/openapi.json",
        ),
        (
            Method::GET,
            "/portal/sign-in".to_owned(),
            200,
            "/portal/sign-in",
        ),
        (
            Method::GET,
            "/portal/x/y".to_owned(),
            404,
            "/portal/{*rest}",
        ),
        (
            Method::GET,
            format!("/connect/{key}?plugin=plugin_a"),
            200,
            "/connect/{pushable_key}",
        ),
        (
            Method::GET,
            "/connect/pk_wrong?plugin=plugin_a".to_owned(),
            404,
            "/connect/{pushable_key}",
        ),
        (Method::HEAD, "/healthz".to_owned(), 200, "/healthz"),
        (Method::GET, "/nothing".to_owned(), 404, "unmatched"),
    ] {
        let found = status(method.clone(), format!("http://{http}{path}")).await;
        assert_eq!(found, expected, "{method} {path}");
        let scraped = scrape(metrics).await;
        let sample = requests(route, method.as_str(), expected);
        assert!(value(&scraped, &sample) >= 1.0, "{sample}");
        let seconds = "mailgate_http_request_seconds_count";
        let measured = format!("{seconds}{{route=\"{route}\",method=\"{method}\"}}");
        assert!(value(&scraped, &measured) >= 1.0, "{measured}");
        assert!(!scraped.contains(key) && !scraped.contains("pk_wrong"));
    }
    let docs = status(Method::GET, format!("http://{http}/docs")).await;
    assert!(docs < 400, "{docs}");
    let scraped = scrape(metrics).await;
    assert!(
        series(&scraped)
            .iter()
            .any(|it| it.contains("route=\"/docs")),
        "{scraped}"
    );
    serve.terminate().await;
    gateway.stop().await;
}

#[tokio::test]
async fn strangers_make_no_series_up() {
    let gateway = Gateway::start().await;
    let metrics = ports::local_address();
    let mut serve = replica(&gateway)
        .set("METRICS__LISTEN", metrics.to_string())
        .start();
    let http = serve.ready().await.http;
    let round = async |number: usize| {
        for line in [
            format!("X-{number} /send"),
            format!("X-{number} /nothing/{number}"),
            format!("X-{number} /portal/{number}"),
            "DELETE /send".to_owned(),
            "OPTIONS *".to_owned(),
            format!("GET /{number}\"}}%0a%22"),
            format!("GET /apps/{number}/logs/{number}?{number}={number}"),
            format!("GET /connect/{number}"),
            format!("GET //{number}//"),
            format!("GET http://elsewhere-{number}.example/{number}"),
            format!("CONNECT host-{number}:443"),
            format!("PUT /portal/assets/{number}"),
        ] {
            let answer = raw(http, &line).await;
            assert!(answer.starts_with("HTTP/1.1 "), "{line}: {answer}");
            assert!(!answer.starts_with("HTTP/1.1 2"), "{line}: {answer}");
        }
    };
    round(10_007).await;
    let first = scrape(metrics).await;
    for number in 10_008..10_030 {
        round(number).await;
    }
    let last = scrape(metrics).await;
    let known = series(&first);
    assert!(!known.is_empty());
    assert_eq!(known, series(&last));
    for text in ["100", "X-", "elsewhere", "host-", "OPTIONS", "CONNECT"] {
        let found = known.iter().find(|series| series.contains(text));
        assert_eq!(found, None, "{text}");
    }
    // All methods that /send doesn't take are one, and none of them is measured.
    let refused = requests("/send", "other", 405);
    assert!((value(&last, &refused) - 46.0).abs() < 1e-9, "{last}");
    let of_send: Vec<&String> = known.iter().filter(|it| it.contains("\"/send\"")).collect();
    assert_eq!(of_send, [&refused]);
    serve.terminate().await;
    gateway.stop().await;
}

#[tokio::test]
async fn the_process_is_measured_as_client_libraries_do() {
    let gateway = Gateway::start().await;
    let metrics = ports::local_address();
    let mut serve = replica(&gateway)
        .set("METRICS__LISTEN", metrics.to_string())
        .start();
    serve.ready().await;
    let scraped = scrape(metrics).await;
    let of = |name: &str| {
        assert!(scraped.contains(&format!("\n# TYPE {name} ")), "{scraped}");
        let sample = scraped
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")));
        value(sample.unwrap_or(&scraped), name)
    };
    let now = mailgate_types::clock::Clock::now(&mailgate_types::clock::SystemClock).timestamp();
    #[expect(clippy::cast_precision_loss, reason = "seconds are exact")]
    let age = now as f64 - of("process_start_time_seconds");
    assert!((-2.0..600.0).contains(&age), "{age}");
    assert!(of("process_cpu_seconds_total") > 0.0);
    assert!(of("process_cpu_seconds_total") < 600.0);
    let resident = of("process_resident_memory_bytes");
    assert!(resident > 1e6, "{resident}");
    assert!(of("process_virtual_memory_bytes") > resident);
    assert!(of("process_threads") >= 2.0);
    let folder = format!("/proc/{}/fd", serve.pid());
    let there = std::fs::read_dir(folder).unwrap().count();
    let open = of("process_open_fds");
    #[expect(clippy::cast_precision_loss, reason = "there are not so many")]
    let difference = (open - there as f64).abs();
    assert!(open > 5.0 && difference < 20.0, "{open}, {there}");
    assert!(of("process_max_fds") > open);
    serve.terminate().await;
    // The whole is what Prometheus takes.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &scraped).unwrap();
    let path = file.path().to_str().unwrap();
    let checked = tokio::process::Command::new("sh")
        .args(["-c", "promtool check metrics < \"$1\"", "sh", path])
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(!said.contains("error"), "{said}");
    gateway.stop().await;
}
