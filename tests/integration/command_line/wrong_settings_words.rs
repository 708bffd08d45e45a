//! What a person reads who has set something wrong: a sentence that says what to do, in no library's words.

use std::net::TcpListener;

use super::process::{Finished, Invocation, certificates};
use crate::support::database;

/// How values of Rust and the words of libraries look, which nobody should have to read.
const FOREIGN: [&str; 6] = [
    "Some(",
    "None",
    "KeyMismatch",
    "InvalidCertificate",
    "resolved migrations",
    "Error {",
];

fn says(finished: &Finished, code: i32, words: &[&str]) {
    finished.fails(code, &words[..1]);
    for word in words {
        assert!(
            finished.stderr.contains(word),
            "{word}: {}",
            finished.stderr
        );
    }
    for word in FOREIGN {
        assert!(
            !finished.stderr.contains(word),
            "{word}: {}",
            finished.stderr
        );
    }
}

#[tokio::test]
async fn a_key_of_another_certificate() {
    let (folder, files) = certificates();
    let (_other_folder, other) = certificates();
    let url = "postgres://127.0.0.1:1/x";
    let serve = Invocation::serve(url, &files).set("TLS__KEY", &other.key);
    let words = [
        "tls.certificate and tls.key ",
        "the key is not the certificate's; give the two files",
    ];
    says(&serve.finish().await, 1, &words);
    let hollow = folder.path().join("hollow.pem");
    let text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(&hollow, text).unwrap();
    let serve = Invocation::serve(url, &files).set("TLS__CERTIFICATE", &hollow);
    let words = [
        "tls.certificate and tls.key ",
        "give the file as it was issued",
    ];
    says(&serve.finish().await, 1, &words);
}

#[tokio::test]
async fn a_database_of_a_newer_version() {
    let (_folder, files) = certificates();
    let url = database::create().await;
    let mut connection = database::connect(&url).await;
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99999, 'from the future', true, '', 0)",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    let migrate = Invocation::new(["migrate"]).set("DATABASE__URL", &url);
    for invocation in [Invocation::serve(&url, &files), migrate] {
        let words = [
            "belongs to a newer mailgate: its migration 99999",
            "run the newer version",
        ];
        says(&invocation.finish().await, 1, &words);
    }
}

#[tokio::test]
async fn a_database_that_something_else_has_made() {
    let url = database::create().await;
    sqlx::query("UPDATE _sqlx_migrations SET checksum = '' WHERE version = 1")
        .execute(&mut database::connect(&url).await)
        .await
        .unwrap();
    let migrate = Invocation::new(["migrate"]).set("DATABASE__URL", &url);
    let words = ["was not made by this mailgate: its migration 1 differs; give database.url"];
    says(&migrate.finish().await, 1, &words);
}

#[tokio::test]
async fn a_role_a_database_and_a_server_that_are_not_there() {
    let url = database::create().await;
    let (server, rest) = url.split_once("/test_").unwrap();
    let (_, parameters) = rest.split_once('?').unwrap();
    let (_, host) = server.split_once('@').unwrap();
    for (url, words) in [
        (
            format!("postgres://nosuch@{host}/test_{rest}"),
            [
                "can't be reached: ",
                "role \"nosuch\" does not exist",
                "give database.url a user",
            ],
        ),
        (
            format!("{server}/nosuch?{parameters}"),
            [
                "can't be reached: ",
                "database \"nosuch\" does not exist",
                "make it with createdb",
            ],
        ),
        (
            "postgres://127.0.0.1:1/x".to_owned(),
            [
                "can't be reached: ",
                "Connection refused",
                "start Postgres there",
            ],
        ),
    ] {
        let migrate = Invocation::new(["migrate"]).set("DATABASE__URL", url);
        says(&migrate.finish().await, 1, &words);
    }
}

#[tokio::test]
async fn all_ports_that_are_taken_are_named_at_once() {
    let (_folder, files) = certificates();
    let taken = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let settings = [
        ("HTTP__LISTEN", "http.listen: "),
        ("SMTP__STARTTLS_LISTEN", "smtp.starttls_listen: "),
        ("SMTP__TLS_LISTEN", "smtp.tls_listen: "),
        ("METRICS__LISTEN", "metrics.listen: "),
    ];
    let mut serve = Invocation::serve("postgres://127.0.0.1:1/x", &files);
    for (listener, (variable, _)) in taken.iter().zip(settings) {
        serve = serve.set(variable, listener.local_addr().unwrap().to_string());
    }
    serve
        .finish()
        .await
        .fails(1, &settings.map(|(_, line)| line));
}

#[tokio::test]
async fn the_line_of_a_start_shows_addresses_as_they_are_written() {
    let url = database::create().await;
    let (_folder, files) = certificates();
    let mut serve = Invocation::serve(&url, &files)
        .set("SMTP__TLS_LISTEN", "")
        .start();
    let line = serve.logged("mailgate serves").await;
    let starttls = line["starttls"].as_str().unwrap();
    assert!(
        starttls.parse::<std::net::SocketAddr>().is_ok(),
        "{starttls}"
    );
    assert!(
        line.get("tls").is_none(),
        "what is off is not named: {line}"
    );
    serve.terminate().await;
}
