//! What the documents let an operator type.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use super::super::languages::Environment;
use super::super::{Use, configurations, the_block, used};
use super::{filled, type_in};
use crate::command_line::process::{Invocation, http_client};
use crate::support::database;

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_types_works() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let folder = TempDir::new().unwrap();
    let database_url = database::create().await;
    let operator = |start: &str| the_block(Use::Operator, start);

    let certificate = folder.path().join("tls");
    let script = operator("install -d /etc/mailgate/tls")
        .replace("/etc/mailgate/tls", &certificate.display().to_string());
    let printed = type_in(folder.path(), &script, &Environment::new()).await;
    let key = printed.lines().last().unwrap();
    assert!(key.starts_with("k1:") && key.len() == 47, "{printed}");
    let script = operator("openssl req -x509 -newkey ec")
        .replace("/etc/mailgate/tls", &certificate.display().to_string());
    type_in(folder.path(), &script, &Environment::new()).await;
    let settings = configurations::of_run_it()
        .replace("postgres://mailgate:…@localhost/mailgate", &database_url)
        .replace("k1:…", key)
        .replace("/etc/mailgate/tls", &certificate.display().to_string());
    fs::write(folder.path().join("mailgate.toml"), settings).unwrap();

    // Building and installing it is what runs this test.
    let script = operator("export MAILGATE_COMMIT=");
    let line = script.lines().last().unwrap();
    let line = line.replace("/etc/mailgate/mailgate.toml", "mailgate.toml");
    let arguments = line.strip_prefix("mailgate ").expect(&line).split(' ');
    let mut serve = Invocation::new(arguments)
        .under([
            "sh".as_ref(),
            "-c".as_ref(),
            "cd \"$0\" && exec \"$@\"".as_ref(),
            folder.path().as_os_str(),
        ])
        .set("HTTP__LISTEN", "127.0.0.1:0")
        .set("SMTP__STARTTLS_LISTEN", "127.0.0.1:0")
        .set("SMTP__TLS_LISTEN", "127.0.0.1:0")
        .set("METRICS__LISTEN", "")
        .set("LOG__FORMAT", "json")
        .start();
    let addresses = serve.ready().await;
    let url = format!("http://{}/healthz", addresses.http);
    assert_eq!(http_client().get(url).send().await.unwrap().status(), 200);

    let list = "mailgate subscriber list --config mailgate.toml --json";
    let create = "mailgate subscriber create --config mailgate.toml --label Other --email a@b.example --json";
    let script = format!("{create}\n{list}");
    let printed = type_in(folder.path(), &script, &Environment::new()).await;
    let id = printed
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .find(|word| word.starts_with("sub_"))
        .expect("an id");
    let script = operator("export MAILGATE_CONFIG=");
    let script = script.replace("/etc/mailgate/mailgate.toml", "mailgate.toml");
    let script = filled(
        &script,
        &[
            ("sub_…", id),
            ("--yes --label \"ACME\"", "--yes --label Other"),
        ],
    );
    let printed = type_in(folder.path(), &script, &Environment::new()).await;
    let secrets = printed.matches("sk_").count();
    assert!(secrets >= 2 && printed.contains("ACME"), "{printed}");
    let printed = type_in(folder.path(), list, &Environment::new()).await;
    let listed: Value = serde_json::from_str(&printed).unwrap();
    let deleted = listed["subscribers"].as_array().unwrap().iter();
    let deleted = deleted.filter(|it| it["status"] == "deleted");
    let deleted: Vec<_> = deleted.map(|it| &it["label"]).collect();
    assert_eq!(deleted, ["Other"], "{printed}");
    serve.terminate().await;

    let copies = folder.path().join("copies");
    let hook = folder.path().join("hook").display().to_string();
    let script = operator("cat > /usr/local/bin/mailgate-certificate")
        .replace("/usr/local/bin/mailgate-certificate", &hook)
        .replace("/etc/mailgate/tls", &copies.display().to_string());
    type_in(folder.path(), &script, &Environment::new()).await;
    for (lineage, is_copied) in [("other.example", false), ("smtp.gateway.example", true)] {
        let lineage = folder.path().join(lineage);
        symlink(&certificate, &lineage).unwrap();
        let renewed = Environment::from([("RENEWED_LINEAGE", lineage.display().to_string())]);
        type_in(folder.path(), &hook, &renewed).await;
        assert_eq!(copies.exists(), is_copied, "{}", lineage.display());
    }
    for file in ["fullchain.pem", "privkey.pem"] {
        let mode = fs::metadata(copies.join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o640, "{file}");
    }

    let typed = [
        "install -d /etc/mailgate/tls",
        "openssl req -x509 -newkey ec",
        "cat > /usr/local/bin/mailgate-certificate",
        "export MAILGATE_COMMIT=",
        "export MAILGATE_CONFIG=",
    ];
    for block in used(Use::Operator) {
        assert!(
            typed.iter().any(|start| block.text.starts_with(start)),
            "{}: a block that isn't typed here",
            block.place()
        );
    }
}
