//! What others make of the document: the linter finds no mistake in it, and clients that are generated of it have every
//! operation and work.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use std::process::Command;
use tempfile::TempDir;

use super::{document, start};
use crate::peers::process;
use crate::peers::{node, python, sources};
use crate::support::caller::Caller;
use crate::support::gateway::{Gateway, MAILBOX};

/// Longest that one program may take; most take a few seconds.
const LIMIT: Duration = Duration::from_mins(5);

/// What a generator calls an operation of this name.
type Called = fn(&str) -> String;

const GENERATORS: [(&str, Called); 4] = [
    ("python", |name| format!("def {name}(")),
    ("go", |name| format!(") {}Execute(", pascal_case(name))),
    ("typescript-fetch", |name| {
        format!("async {}(", camel_case(name))
    }),
    ("rust", |name| format!("pub async fn {name}(")),
];

fn pascal_case(name: &str) -> String {
    let words = name.split('_').filter_map(|word| word.split_at_checked(1));
    words
        .map(|(first, rest)| first.to_uppercase() + rest)
        .collect()
}

fn camel_case(name: &str) -> String {
    let name = pascal_case(name);
    let (first, rest) = name.split_at(1);
    first.to_lowercase() + rest
}

/// The gateway's own document in a folder.
struct Described {
    folder: TempDir,
    document: Value,
}

impl Described {
    async fn by(gateway: &Gateway) -> Self {
        let document = document(gateway).await;
        let folder = tempfile::tempdir().unwrap();
        let described = Self { folder, document };
        std::fs::write(described.file(), described.document.to_string()).unwrap();
        described
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("openapi.json")
    }

    /// The names of the operations that a client can call.
    fn operations(&self) -> BTreeSet<String> {
        let paths = self.document["paths"].as_object().unwrap();
        let operations = paths
            .values()
            .flat_map(|path| path.as_object().unwrap().values());
        operations
            .map(|operation| super::text(&operation["operationId"]).to_owned())
            .collect()
    }

    /// Makes a client, and answers its folder.
    async fn generate(&self, generator: &str, properties: &str) -> PathBuf {
        let client = self.folder.path().join(generator);
        let program = python().with_file_name("openapi-generator-cli");
        let mut command = Command::new(program);
        command
            .args(["generate", "--generator-name", generator, "--input-spec"])
            .arg(self.file())
            .arg("--output")
            .arg(&client)
            .args(["--git-user-id", "mailgate", "--git-repo-id", "client"])
            .args(["--additional-properties", properties])
            // Bounds what the Java machine takes beside other tests.
            .env("JAVA_TOOL_OPTIONS", "-Xmx512m -XX:+UseSerialGC");
        let output = run(command, generator).await;
        assert!(!output.contains("collision"), "{generator}: {output}");
        client
    }
}

async fn run(command: Command, name: &str) -> String {
    let output = process::run(command, b"", LIMIT).await;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{name}: {said}");
    said
}

/// All that stands in a client's source files.
fn source(folder: &Path) -> String {
    let mut source = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "docs" && name != "test" {
            source += &self::source(&path);
        } else if [".py", ".go", ".ts", ".rs"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            source += &std::fs::read_to_string(&path).unwrap();
        }
    }
    source
}

#[tokio::test]
async fn the_linter_finds_no_mistake() {
    let gateway = start().await;
    let described = Described::by(&gateway).await;
    let linter = node().with_file_name("x");
    let packages = linter
        .ancestors()
        .find(|folder| folder.ends_with("node_modules"));
    let linter = packages.unwrap().join("@redocly/cli/bin/cli.js");
    let mut command = Command::new(node());
    command
        .arg(linter)
        .args(["lint", "--format=json"])
        .arg(described.file())
        .current_dir(described.folder.path())
        .env("REDOCLY_TELEMETRY", "off")
        .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
    let output = process::run(command, b"", LIMIT).await;
    let said = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&said)
        .unwrap_or_else(|_| panic!("{said} {}", String::from_utf8_lossy(&output.stderr)));
    let rules = report["problems"].as_array().unwrap().iter();
    let rules: BTreeSet<&str> = rules
        .map(|problem| super::text(&problem["ruleId"]))
        .collect();
    // What only ever redirects answers no 2xx, and nothing that a caller of a health check does can be wrong.
    let known = BTreeSet::from(["operation-2xx-response", "operation-4xx-response"]);
    assert!(rules.is_subset(&known), "{report:#}");
    gateway.stop().await;
}

#[tokio::test]
async fn generated_clients_have_every_operation() {
    let gateway = start().await;
    let described = Described::by(&gateway).await;
    let operations = described.operations();
    assert!(operations.len() > 40, "{operations:?}");
    for (generator, called) in GENERATORS {
        let source = source(&described.generate(generator, "").await);
        for operation in &operations {
            let call = called(operation);
            assert!(source.contains(&call), "{generator} has no {call}");
        }
    }
    gateway.stop().await;
}

async fn client_of(gateway: &Gateway, mut command: Command) -> Command {
    let owner = Caller::owner(gateway).await;
    command
        .env("MAILGATE_URL", &gateway.daemon.base_url)
        .env("MAILGATE_PK", gateway.app.pushable_key.expose())
        .env("MAILGATE_SEND_KEY", gateway.app.send_key.expose())
        .env("MAILGATE_API_SECRET", owner.secret);
    command
}

/// Whether the message that a client says it has sent is the one that the log has.
async fn is_sent(gateway: &Gateway, output: &str, subject: &str) {
    let log_id = output.lines().last().unwrap_or_default();
    let owner = Caller::owner(gateway).await;
    let log = owner.get(&format!("/logs/{log_id}")).await.success(200);
    assert_eq!(log["subject"], subject);
    assert_eq!(log["from_address"], MAILBOX);
    assert_eq!(log["status"], "sent");
}

#[tokio::test]
async fn a_generated_python_client_sends_and_finds_its_message() {
    let gateway = start().await;
    let described = Described::by(&gateway).await;
    let client = described
        .generate("python", "packageName=mailgate_client")
        .await;
    let mut command = Command::new(python());
    command
        .arg(sources().join("generated_client.py"))
        .env("PYTHONPATH", &client)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let output = run(client_of(&gateway, command).await, "python").await;
    is_sent(&gateway, &output, "From Python").await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_generated_go_client_sends_and_finds_its_message() {
    let gateway = start().await;
    let described = Described::by(&gateway).await;
    let client = described.generate("go", "packageName=mailgate").await;
    let program = client.join("program");
    std::fs::create_dir(&program).unwrap();
    let main = sources().join("generated_client.go");
    std::fs::copy(main, program.join("main.go")).unwrap();
    // Debian's own Go is older than what the client asks for, and compiles it all the same.
    let mut command = Command::new("go");
    command
        .args(["run", "./program"])
        .current_dir(&client)
        .env("GOCACHE", python().with_file_name("../../go"))
        .env("GOFLAGS", "-p=1 -mod=mod")
        .env("GOPROXY", "off");
    let output = run(client_of(&gateway, command).await, "go").await;
    is_sent(&gateway, &output, "From Go").await;
    gateway.stop().await;
}
