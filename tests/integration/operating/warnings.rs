//! What a start says of settings that it gets along without.

use crate::command_line::process::{Invocation, certificates};
use crate::support::database;

#[tokio::test]
async fn what_lacks_is_told_with_what_to_do() {
    let url = database::create().await;
    let (_folder, files) = certificates();
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
