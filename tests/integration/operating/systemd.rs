//! What systemd hands over and is told, with the test in its place.

use std::path::Path;
use std::time::Duration;

use tokio::net::UnixDatagram;

use crate::command_line::process::{END, Invocation, START, certificates, folder, http_client};
use crate::support::database;
use crate::support::smtp_client::SmtpClient;

const ACTIVATE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/integration/operating/activate.py"
);

/// The next thing that the process says, waited for.
async fn said(socket: &UnixDatagram, patience: Duration) -> Option<String> {
    let mut bytes = [0; 512];
    let received = tokio::time::timeout(patience, socket.recv(&mut bytes)).await;
    let length = received.ok()?.unwrap();
    Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
}

#[tokio::test]
async fn it_says_that_it_is_ready_lives_and_stops() {
    let url = database::create().await;
    let (_folder, files) = certificates();
    let run = folder(0o755);
    let path = run.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut serve = Invocation::serve(&url, &files)
        .variable("NOTIFY_SOCKET", &path)
        .variable("WATCHDOG_USEC", "400000")
        .start();
    let addresses = serve.ready().await;
    assert_eq!(said(&socket, START).await.as_deref(), Some("READY=1\n"));
    for _ in 0..5 {
        let alive = said(&socket, END).await;
        assert_eq!(alive.as_deref(), Some("WATCHDOG=1\n"));
    }
    serve.signal("TERM").await;
    let mut last = said(&socket, END).await;
    while last.as_deref() == Some("WATCHDOG=1\n") {
        last = said(&socket, END).await;
    }
    assert_eq!(last.as_deref(), Some("STOPPING=1\n"));
    assert_eq!(serve.end(END).await.code(), Some(0), "{}", serve.stderr());
    assert!(
        http_client()
            .get(format!("http://{}/healthz", addresses.http))
            .send()
            .await
            .is_err()
    );
}

#[tokio::test]
async fn nobody_is_told_of_a_life_that_nobody_asks_for() {
    let url = database::create().await;
    let (_folder, files) = certificates();
    let run = folder(0o755);
    let path = run.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let mut serve = Invocation::serve(&url, &files)
        .variable("NOTIFY_SOCKET", &path)
        .start();
    serve.ready().await;
    assert_eq!(said(&socket, START).await.as_deref(), Some("READY=1\n"));
    serve.terminate().await;
    assert_eq!(said(&socket, END).await.as_deref(), Some("STOPPING=1\n"));
    assert_eq!(said(&socket, Duration::from_millis(100)).await, None);
}

fn activated(
    url: &str,
    files: &mailgate_sandbox::certificates::CertificateFiles,
    names: &str,
) -> Invocation {
    Invocation::serve(url, files).under(["python3", ACTIVATE, names])
}

#[tokio::test]
async fn sockets_that_are_handed_over_are_served_whatever_the_settings_say() {
    let url = database::create().await;
    let (_folder, files) = certificates();
    let mut serve = activated(&url, &files, "tls,metrics,http,starttls")
        .set("METRICS__LISTEN", "")
        .set("HTTP__LISTEN", "192.0.2.1:80")
        .set("SMTP__STARTTLS_LISTEN", "192.0.2.1:587")
        .set("SMTP__TLS_LISTEN", "")
        .start();
    let addresses = serve.ready().await;
    let ports = std::fs::read_to_string(serve.folder().join("ports")).unwrap();
    let ports: Vec<u16> = ports.split(' ').map(|port| port.parse().unwrap()).collect();
    let [tls, metrics, http, starttls] = ports[..] else {
        panic!("{ports:?}")
    };
    assert_eq!(
        [
            addresses.tls.port(),
            addresses.http.port(),
            addresses.starttls.port()
        ],
        [tls, http, starttls]
    );
    let scraped = http_client()
        .get(format!("http://127.0.0.1:{metrics}/metrics"))
        .send()
        .await
        .unwrap();
    assert!(
        scraped
            .text()
            .await
            .unwrap()
            .contains("mailgate_build_info")
    );
    let mut client = SmtpClient::connect(addresses.starttls).await;
    assert!(client.reply().await.starts_with("220 "));
    let mut client = SmtpClient::connect(addresses.tls)
        .await
        .encrypt(&files.ca)
        .await;
    assert!(client.reply().await.starts_with("220 "));
    serve.terminate().await;
}

#[tokio::test]
async fn a_socket_of_another_name_stops_the_start() {
    let url = database::create().await;
    let (_folder, files) = certificates();
    for (names, wrong) in [("http,smtp", "\"smtp\""), ("http,http", "\"http\"")] {
        let finished = activated(&url, &files, names)
            .set("LOG__FILTER", "error")
            .finish()
            .await;
        finished.fails(1, &[wrong]);
    }
}

#[test]
fn the_units_name_the_sockets_that_the_gateway_knows() {
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/systemd");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(units).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        if path.extension().is_some_and(|it| it == "socket") {
            let name = text
                .lines()
                .find_map(|line| line.strip_prefix("FileDescriptorName="));
            names.push(name.unwrap().to_owned());
            assert!(
                text.contains("Service=mailgate.service"),
                "{}",
                path.display()
            );
        } else {
            assert!(text.contains("Type=notify") && text.contains("WatchdogSec="));
            // A user that is made up at each start owns no file: the settings are handed over.
            assert!(text.contains("\nDynamicUser=yes\n"));
            let settings = text
                .lines()
                .find_map(|line| line.strip_prefix("LoadCredential="))
                .and_then(|credential| credential.split_once(':'));
            let (name, path) = settings.expect("the settings are a credential");
            assert_eq!(path, "/etc/mailgate/mailgate.toml");
            // It would fail again, with callers waiting at the sockets.
            assert!(text.contains("\nRestartPreventExitStatus=2\n"));
            assert!(text.contains("\nExecReload=/bin/kill -HUP $MAINPID\n"));
            let start = text
                .lines()
                .find_map(|line| line.strip_prefix("ExecStart="));
            assert!(start.is_some_and(|it| it.ends_with(&format!("--config %d/{name}"))));
        }
    }
    names.sort();
    assert_eq!(names, ["http", "metrics", "starttls", "tls"]);
}
