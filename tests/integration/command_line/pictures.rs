//! The pages of a seeded `dev` are made of what they were when their pictures were taken (`make pictures`), in the same
//! places. Boxes are compared, not pixels: these depend on a machine's fonts, and on the time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::dev::Dev;
use super::process::Invocation;
use crate::peers;
use crate::peers::browser::Home;
use crate::peers::process;
use crate::portal::visitor::Visitor;
use crate::support::gateway::Gateway;

/// Where all components are.
const COMPONENTS: &str = "/portal/_components";

/// Longest that a browser may take for all pages, on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(8);

fn boxes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images/portal/boxes.json")
}

#[tokio::test]
async fn no_page_has_lost_its_layout() {
    let folder = TempDir::new().unwrap();
    let seeded = Invocation::dev(folder.path()).argument("--seed");
    let mut dev = Dev::start(seeded.argument("--ephemeral"), folder.path()).await;
    dev.trial().await;
    let home = Home::new();
    let mut compare = Command::new(peers::node());
    compare
        .arg(peers::sources().join("pictures/compare.mjs"))
        .arg(folder.path().join("dev.json"))
        .arg(boxes())
        .env("HOME", &home.folder)
        .env("TMPDIR", &home.folder);
    let output = process::run(compare, b"", PATIENCE).await;
    let [said, failed] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(
        output.status.success(),
        "the pages aren't as in docs/images/portal; if they are meant so, run make pictures:\n{said}{failed}"
    );
    components_are_there(&dev).await;
    dev.child.terminate().await;
}

async fn components_are_there(dev: &Dev) {
    let url = format!("{}{COMPONENTS}", dev.text("/base_url"));
    let page = dev.http.get(url).send().await.unwrap();
    assert_eq!(page.status(), 200);
    let text = page.text().await.unwrap();
    assert!(text.contains("Components"), "{text}");
    for kept in [
        dev.text("/subscriber/subscriber_id"),
        dev.text("/mailbox/email"),
        "sk_",
        "sek_",
        "whsec_",
    ] {
        assert!(!text.contains(kept), "{kept}: {text}");
    }
    for loaded in ["src=\"", "<use href=\"", "rel=\"stylesheet\" href=\""] {
        for (_, rest) in text
            .match_indices(loaded)
            .map(|(at, it)| text.split_at(at + it.len()))
        {
            assert!(rest.starts_with("/portal/assets/"), "{loaded}{rest:.40}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_components_are_only_in_dev() {
    let gateway = Gateway::start().await;
    let stranger = Visitor::new(&gateway.daemon.base_url);
    assert_eq!(stranger.get(COMPONENTS).await.status, 404);
    let visitor = Visitor::signed_in(&gateway).await;
    assert_eq!(visitor.get(COMPONENTS).await.status, 404);
    gateway.stop().await;
}
