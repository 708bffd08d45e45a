//! Good settings with which the program can't start all the same: exit code 1, and one line.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::process::{Finished, Invocation, certificates, folder, run};
use crate::support::database;

/// Nobody listens there: a port below 1024 that no service has.
const NOWHERE: &str = "postgres://hunter2:hunter2@127.0.0.1:1/mailgate";

#[tokio::test]
async fn a_database_that_is_not_there() {
    let (_folder, files) = certificates();
    let lacking = {
        let url = database::create().await;
        let (server, rest) = url.split_once("/test_").unwrap();
        let (_, parameters) = rest.split_once('?').unwrap();
        format!("{server}/nosuch?{parameters}")
    };
    let refusing = refusing_database().await;
    for (url, reason) in [
        (NOWHERE, "Connection refused"),
        (&lacking, "database \"nosuch\" does not exist"),
        (&refusing, "password authentication failed"),
        (
            "postgres://u:hunter2@127.0.0.1/x?sslmode=hunter",
            "database.url can't be read",
        ),
        ("postgres://u:hunter2@nosuch.invalid/x", "can't be reached"),
    ] {
        let (serve, migrate) = tokio::join!(
            Invocation::serve(url, &files).finish(),
            Invocation::new(["migrate"])
                .set("DATABASE__URL", url)
                .finish()
        );
        for finished in [serve, migrate] {
            finished.fails(1, &["database.url"]);
            let told = finished.stderr.replace('\\', "");
            assert!(told.contains(reason), "{told}");
        }
    }
}

/// A server that asks for a password in clear and refuses each one, as Postgres does (the manual's
/// "Message Formats"); answers an address with one. It ends with the test.
async fn refusing_database() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = [0; 1_024];
            // SSLRequest, StartupMessage and PasswordMessage, each in one write.
            let error =
                b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user \"u\"\0\0";
            let mut refusal = vec![b'E'];
            refusal.extend(u32::try_from(error.len() + 4).unwrap().to_be_bytes());
            refusal.extend(error);
            for answer in [b"N".as_slice(), b"R\0\0\0\x08\0\0\0\x03", &refusal] {
                if stream.read(&mut bytes).await.is_err() || stream.write_all(answer).await.is_err()
                {
                    break;
                }
            }
        }
    });
    format!("postgres://u:hunter2@{address}/mailgate")
}

#[tokio::test]
async fn a_port_that_is_taken() {
    let (_folder, files) = certificates();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (variable, setting) in [
        ("HTTP__LISTEN", "http.listen: "),
        ("SMTP__STARTTLS_LISTEN", "smtp.starttls_listen: "),
        ("SMTP__TLS_LISTEN", "smtp.tls_listen: "),
        ("METRICS__LISTEN", "metrics.listen: "),
    ] {
        let serve = Invocation::serve(NOWHERE, &files).set(variable, &address);
        let finished = serve.finish().await;
        finished.fails(1, &[setting]);
        assert!(finished.stderr.contains(&address), "{}", finished.stderr);
    }
}

#[tokio::test]
async fn certificates_that_can_not_be_used() {
    let (_folder, files) = certificates();
    let (_other_folder, other) = certificates();
    let folder = TempDir::new().unwrap();
    let written = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let missing = folder.path().join("missing.pem");
    let garbage = written("garbage.pem", "hunter2\n");
    let cut = written("cut.pem", "-----BEGIN CERTIFICATE-----\nhunter2hunter2\n");
    let cut_key = written(
        "cut_key.pem",
        "-----BEGIN PRIVATE KEY-----\nhunter2hunter2\n",
    );
    let hollow = written(
        "hollow.pem",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    let hollow_key = written(
        "hollow_key.pem",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    );
    let empty = written("empty.pem", "");
    let directory = folder.path().to_owned();
    let is_of = |path: &std::path::PathBuf, setting: &'static str| (path.clone(), setting);
    let certificate = "tls.certificate: ";
    let key = "tls.key: ";
    let both = "tls.certificate and tls.key ";
    for (bad, setting) in [&missing, &garbage, &cut, &empty, &directory, &files.key]
        .map(|path| is_of(path, certificate))
        .into_iter()
        .chain([is_of(&hollow, both), is_of(&other.certificate, both)])
    {
        let serve = Invocation::serve(NOWHERE, &files).set("TLS__CERTIFICATE", bad);
        serve.finish().await.fails(1, &[setting]);
    }
    for (bad, setting) in [
        &missing,
        &garbage,
        &cut_key,
        &empty,
        &directory,
        &files.certificate,
    ]
    .map(|path| is_of(path, key))
    .into_iter()
    .chain([is_of(&hollow_key, both), is_of(&other.key, both)])
    {
        let serve = Invocation::serve(NOWHERE, &files).set("TLS__KEY", bad);
        serve.finish().await.fails(1, &[setting]);
    }
}

#[tokio::test]
async fn a_certificate_for_another_name() {
    let (_folder, files) = certificates();
    let finished = Invocation::serve(NOWHERE, &files)
        .set("SMTP__HOST", "smtp.gateway.example")
        .finish()
        .await;
    finished.fails(
        1,
        &["is not for smtp.gateway.example, the name in smtp.host"],
    );
    assert!(
        finished.stderr.contains(", but for "),
        "{}",
        finished.stderr
    );
    let finished = Invocation::serve(NOWHERE, &files)
        .set("HTTP__TLS_LISTEN", "127.0.0.1:0")
        .set("HTTP__BASE_URL", "https://gateway.example")
        .finish()
        .await;
    finished.fails(
        1,
        &["is not for gateway.example, the name in http.base_url"],
    );
    // Behind a proxy, that name is the proxy's.
    let finished = Invocation::serve(NOWHERE, &files)
        .set("HTTP__BASE_URL", "https://gateway.example")
        .finish()
        .await;
    finished.fails(1, &["database.url"]);
}

#[tokio::test]
async fn a_database_that_keeps_no_letters() {
    let (_folder, files) = certificates();
    for encoding in ["SQL_ASCII", "LATIN1"] {
        let url = database::create_in(encoding).await;
        let text = format!("keeps texts as {encoding}, and mail needs UTF8");
        let serve = Invocation::serve(&url, &files);
        serve.finish().await.fails(1, &[&text]);
        let migrate = Invocation::new(["migrate"]).set("DATABASE__URL", &url);
        migrate.finish().await.fails(1, &[&text]);
        let tables: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'",
        )
        .fetch_one(&mut database::connect(&url).await)
        .await
        .unwrap();
        assert_eq!(tables, 0, "nothing was begun");
    }
}

#[tokio::test]
async fn what_prevents_a_start_is_told_in_the_form_of_the_log() {
    let (_folder, files) = certificates();
    let whole = |serve: Finished| -> Vec<Value> {
        let lines = serve.stderr.lines().map(|line| {
            let line: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
            assert!(
                line["timestamp"].is_string() && line["message"].is_string(),
                "{line}"
            );
            line
        });
        lines.filter(|line| line["level"] == "ERROR").collect()
    };
    let wrong = Invocation::serve(NOWHERE, &files)
        .set("SEAL__KEYS", "nonsense")
        .set("SMTP__NO_SUCH_THING", "1");
    assert_eq!(whole(wrong.finish().await).len(), 2);
    for filter in ["info", "off", "mailgate_smtp=debug"] {
        let unreachable = Invocation::serve(NOWHERE, &files).set("LOG__FILTER", filter);
        assert_eq!(whole(unreachable.finish().await).len(), 1, "{filter}");
    }
    // What can be read once only.
    let piped = Invocation::serve(NOWHERE, &files)
        .argument("--config")
        .argument("/dev/stdin")
        .under([
            "sh",
            "-c",
            "echo 'smtp.host = \"localhost\"' | \"$0\" \"$@\"",
        ]);
    let lines = whole(piped.finish().await);
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0]["message"]
            .as_str()
            .unwrap()
            .contains("database.url"),
        "{lines:?}"
    );
    // For people.
    let pretty = Invocation::new(["serve"]).finish().await;
    for line in pretty.stderr.lines() {
        assert!(line.starts_with("mailgate: "), "{line}");
    }
}

#[tokio::test]
async fn roots_of_a_plugin_that_are_missing() {
    let (_folder, files) = certificates();
    let folder = TempDir::new().unwrap();
    let garbage = folder.path().join("garbage.pem");
    std::fs::write(&garbage, "hunter2\n").unwrap();
    for path in [folder.path().join("missing.pem"), garbage] {
        let finished = Invocation::serve(NOWHERE, &files)
            .set("PLUGINS__PLUGIN_B__CLIENT_ID", "id")
            .set("PLUGINS__PLUGIN_B__CA_FILE", &path)
            .finish()
            .await;
        finished.fails(1, &["plugins.plugin_b.ca_file: "]);
        let path = path.to_str().unwrap();
        assert!(finished.stderr.contains(path), "{}", finished.stderr);
    }
}

#[tokio::test]
async fn dev_without_postgres_programs_says_how_to_get_them() {
    let folder = folder(0o755);
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let finished = Invocation::dev(&folder.path().join("dev"))
        .argument("--ephemeral")
        .variable("PG_BINDIR", &empty)
        .finish()
        .await;
    let said: Vec<&str> = finished
        .stderr
        .lines()
        .filter(|line| line.starts_with("mailgate: "))
        .collect();
    assert_eq!(said.len(), 1, "{}", finished.stderr);
    for word in ["initdb", "apt-get install postgresql", "PG_BINDIR"] {
        assert!(said[0].contains(word), "{}", said[0]);
    }
    assert!(!folder.path().join("dev/dev.json").exists());
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused() {
    let (_folder, files) = certificates();
    let url = database::create().await;
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99999, 'from the future', true, '', 0)",
    )
    .execute(&mut database::connect(&url).await)
    .await
    .unwrap();
    let finished = Invocation::serve(&url, &files).finish().await;
    finished.fails(1, &["99999"]);
}

#[tokio::test]
async fn the_command_line_explains_itself() {
    let program = env!("CARGO_BIN_EXE_mailgate");
    let help = tokio::time::timeout(Duration::from_secs(30), run(program, &["--help"])).await;
    let help = help.unwrap();
    for command in ["serve", "dev", "migrate"] {
        assert!(help.contains(command), "{help}");
    }
    let version = run(program, &["--version"]).await;
    assert_eq!(
        version.trim(),
        format!("mailgate {}", env!("CARGO_PKG_VERSION"))
    );
}
