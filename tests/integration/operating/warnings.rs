//! What a start says of settings that it gets along without.

use mailgate_sandbox::certificates;

use crate::command_line::process::{self, Invocation, http_client};
use crate::support::{database, ports};

#[tokio::test]
async fn what_lacks_is_told_with_what_to_do() {
    let url = database::create().await;
    let (_folder, files) = process::certificates();
    for (settings, told, untold) in [
        (
            vec![],
            vec!["http.base_url is not set", "no plugin has a client_id"],
            vec!["client_secret is not set"],
        ),
        (
            vec![
                ("PLUGINS__PLUGIN_A__CLIENT_ID", "x"),
                ("HTTP__BASE_URL", "https://gateway.example"),
            ],
            vec!["plugins.plugin_a.client_secret is not set"],
            vec!["http.base_url is not", "no plugin has", "plugin_b"],
        ),
        (
            vec![
                ("PLUGINS__PLUGIN_A__CLIENT_ID", "x"),
                ("PLUGINS__PLUGIN_A__CLIENT_SECRET", "y"),
                ("HTTP__BASE_URL", "https://gateway.example"),
            ],
            vec![],
            vec!["is not set", "no plugin has"],
        ),
    ] {
        let mut serve = Invocation::serve(&url, &files);
        for (name, value) in settings {
            serve = serve.set(name, value);
        }
        let mut serve = serve.start();
        serve.ready().await;
        let said = serve.stderr();
        for text in told {
            let line = said.lines().find(|line| line.contains(text));
            assert!(
                line.is_some_and(|line| line.contains("WARN") && line.contains("set ")),
                "{text}:\n{said}"
            );
        }
        for text in untold {
            assert!(!said.contains(text), "{text}:\n{said}");
        }
        serve.terminate().await;
    }
}

#[tokio::test]
async fn a_client_secret_that_expires_soon_is_told_and_measured() {
    let url = database::create().await;
    let (_folder, files) = process::certificates();
    let today = chrono::Utc::now().date_naive();
    for (days_left, level, word) in [
        (-2_i64, Some("ERROR"), "has expired"),
        (5, Some("ERROR"), "expires within days"),
        (25, Some("WARN"), "expires soon"),
        (40, None, "client secret"),
    ] {
        let metrics = ports::local_address();
        let day = today + chrono::TimeDelta::days(days_left);
        let mut serve = Invocation::serve(&url, &files)
            .set("METRICS__LISTEN", metrics.to_string())
            .set("PLUGINS__PLUGIN_B__CLIENT_ID", "x")
            .set("PLUGINS__PLUGIN_B__CLIENT_SECRET", "hidden")
            .set("PLUGINS__PLUGIN_B__CLIENT_SECRET_EXPIRES", day.to_string())
            .start();
        serve.ready().await;
        let scraped = http_client().get(format!("http://{metrics}/metrics"));
        let scraped = scraped.send().await.unwrap().text().await.unwrap();
        let expires = day.and_time(chrono::NaiveTime::MIN).and_utc().timestamp();
        for (plugin, expected) in [
            ("plugin_b", expires.to_string()),
            ("plugin_a", "NaN".into()),
        ] {
            let name = "mailgate_client_secret_expiry_timestamp_seconds";
            let sample = format!("{name}{{plugin=\"{plugin}\"}} {expected}\n");
            assert!(scraped.contains(&sample), "{scraped}");
        }
        serve.terminate().await;
        let said = serve.stderr();
        let lines: Vec<&str> = said
            .lines()
            .filter(|line| line.contains("OAuth client secret"))
            .collect();
        assert_eq!(lines.len(), usize::from(level.is_some()), "{said}");
        if let (Some(level), [line]) = (level, lines.as_slice()) {
            assert!(line.contains(level) && line.contains(word), "{line}");
            assert!(line.contains("plugins.plugin_b.client_secret"), "{line}");
        }
        assert!(!said.contains("hidden"));
    }
}

#[tokio::test]
async fn a_certificate_that_expires_soon_is_told_and_measured() {
    let url = database::create().await;
    let now = chrono::Utc::now();
    // They hold for 397 days from the moment that they are made for.
    for (days_left, level, word) in [
        (-2_i64, Some("ERROR"), "has expired"),
        (2, Some("ERROR"), "expires within days"),
        (20, Some("WARN"), "expires soon"),
        (25, None, "certificate"),
    ] {
        let folder = tempfile::TempDir::new().unwrap();
        let made = now - chrono::TimeDelta::days(397 - days_left);
        let files = certificates::ensure(folder.path(), &[], made).unwrap();
        let metrics = ports::local_address();
        let mut serve = Invocation::serve(&url, &files)
            .set("METRICS__LISTEN", metrics.to_string())
            .set("RELAY__CA_FILE", &files.ca)
            .set("RELAY__HOST", "127.0.0.1")
            .set("RELAY__FROM", "billing@gateway.example")
            .start();
        serve.ready().await;
        let scraped = http_client().get(format!("http://{metrics}/metrics"));
        let scraped = scraped.send().await.unwrap().text().await.unwrap();
        let expires = (made + chrono::TimeDelta::days(397)).timestamp();
        for setting in ["tls.certificate", "relay.ca_file"] {
            let sample =
                format!("mailgate_certificate_expiry_timestamp_seconds{{setting=\"{setting}\"}}");
            assert!(
                scraped.contains(&format!("{sample} {expires}\n")),
                "{scraped}"
            );
        }
        serve.terminate().await;
        let said = serve.stderr();
        for setting in ["tls.certificate", "relay.ca_file"] {
            let setting = format!("\"setting\":\"{setting}\"");
            let lines: Vec<&str> = said.lines().filter(|it| it.contains(&setting)).collect();
            assert_eq!(lines.len(), usize::from(level.is_some()), "{said}");
            if let (Some(level), [line]) = (level, lines.as_slice()) {
                assert!(line.contains(level) && line.contains(word), "{line}");
            }
        }
    }
}
