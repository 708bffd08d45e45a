//! A browser: Debian's Chromium without a window, driven by `tests/peers/browser.mjs`.
//!
//! A page that the browser refuses something (Content Security Policy) fails the run; names other
//! than this machine's own don't resolve.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::process;

const CHROMIUM: &str = "/usr/bin/chromium";

/// How long all steps together may take; the failure then names the step.
const STEPS_TIME: Duration = Duration::from_mins(6);

/// Longest that Chromium may take to end when the script was killed.
const END_TIME: Duration = Duration::from_mins(3);

/// Longest that the whole run may take, with the start and the end of the browser.
const RUN_TIME: Duration = Duration::from_mins(7);

/// What the user does. A selector is one of Playwright's (CSS, `text=Send`,
/// `role=button[name="Send"]`) and must fit one element.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    Goto(String),
    /// Goes back to the page before.
    Back(()),
    /// Waits for the page that it leads to, too.
    Click(String),
    /// Selector, and the text that the field then holds.
    Fill(String, String),
    /// Presses keys on whatever has the focus.
    Press(Vec<&'static str>),
    /// Presses Tab until the focus is on one of the elements of this CSS selector; fails where it never is.
    TabTo(String),
    /// Types into whatever has the focus.
    Type(String),
    /// Fails where the page scrolls sideways.
    Fits(()),
    /// The value of a field or the visible text of an element, into [`StepResult::text`].
    Read(String),
    /// What an expression of JavaScript gives, into [`StepResult::text`].
    Measure(&'static str),
    /// Waits until the page's URL fits this regular expression.
    ExpectUrl(String),
    /// Waits until the page shows this text; white space is folded, case counts.
    ExpectText(String),
    /// A picture (PNG) of the whole page, see [`artefact`].
    Screenshot(PathBuf),
    /// A POST of JSON by somebody else, with these headers, who must be answered 2xx.
    Post(String, serde_json::Value, serde_json::Value),
    /// What the user prefers from now on: `light` or `dark`.
    ColorScheme(&'static str),
    /// Fails where axe finds that the page breaks a rule of WCAG 2.2 (A, AA) or a best practice.
    Accessible(()),
}

/// Where the browser is after a step, and what it said during it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepResult {
    pub url: String,
    pub title: String,
    /// HTTP status of the last navigation; `None` when it got no answer.
    pub status: Option<u16>,
    /// How many pages have loaded so far.
    pub loads: u32,
    /// Only of [`Step::Read`] and [`Step::Measure`].
    pub text: Option<String>,
    /// Errors on the console, with failed requests and scripts that threw.
    pub console_errors: Vec<String>,
    /// What a Content Security Policy or the like forbade; empty unless [`Browser::allow_refused`].
    pub refused: Vec<String>,
}

/// A browser yet to start, with a profile of its own for each run.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Browser {
    viewport: Viewport,
    javascript: bool,
    allow_refused: bool,
    /// Longest that one step may take.
    step_seconds: u64,
}

/// In CSS pixels.
#[derive(Debug, Clone, Copy, Serialize)]
struct Viewport {
    width: u16,
    height: u16,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Plan<'a> {
    #[serde(flatten)]
    browser: &'a Browser,
    steps: &'a [Step],
    user_data_folder: &'a Path,
    limit_seconds: u64,
}

impl Browser {
    /// 1280 × 800.
    pub fn desktop() -> Self {
        Self::sized(1280, 800)
    }

    /// 390 × 844.
    pub fn phone() -> Self {
        Self::sized(390, 844)
    }

    pub fn sized(width: u16, height: u16) -> Self {
        Self {
            viewport: Viewport { width, height },
            javascript: true,
            allow_refused: false,
            step_seconds: 60,
        }
    }

    /// Pages run no scripts.
    pub fn without_javascript(self) -> Self {
        Self {
            javascript: false,
            ..self
        }
    }

    /// What the browser refuses is told, and fails nothing.
    pub fn allow_refused(self) -> Self {
        Self {
            allow_refused: true,
            ..self
        }
    }

    /// Where a step is to fail, nobody has to wait long for it.
    pub fn impatient(self) -> Self {
        Self {
            step_seconds: 20,
            ..self
        }
    }

    /// Takes all steps, one result each.
    ///
    /// # Panics
    ///
    /// When a step fails; the message names it.
    pub async fn run(&self, steps: &[Step]) -> Vec<StepResult> {
        self.try_run(steps)
            .await
            .unwrap_or_else(|failure| panic!("{failure}"))
    }

    /// As [`Browser::run`]; a failure names the step, the page and what the browser said.
    pub async fn try_run(&self, steps: &[Step]) -> Result<Vec<StepResult>, String> {
        self.run_in(&Home::new(), steps).await
    }

    /// As [`Browser::try_run`], in a home that nothing else uses.
    pub async fn run_in(&self, home: &Home, steps: &[Step]) -> Result<Vec<StepResult>, String> {
        assert!(
            Path::new(CHROMIUM).is_file(),
            "{CHROMIUM} isn't there: run tests/peers/install as root"
        );
        let plan = Plan {
            browser: self,
            steps,
            user_data_folder: &home.folder.join("profile"),
            limit_seconds: STEPS_TIME.as_secs(),
        };
        let mut command = Command::new(super::node());
        command
            .arg(super::sources().join("browser.mjs"))
            // Chromium writes to these, whatever its profile is; it ends with the script.
            .env("HOME", &home.folder)
            .env("TMPDIR", &home.folder)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_CACHE_HOME");
        let plan = serde_json::to_vec(&plan).unwrap();
        let output = process::run(command, &plan, RUN_TIME).await;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let results: Vec<StepResult> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(results.len(), steps.len(), "a step told nothing");
        Ok(results)
    }
}

/// A temporary folder for one run, which outlives the browser.
pub struct Home {
    pub folder: PathBuf,
}

impl Home {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("mailgate-browser-")
            .tempdir()
            .unwrap()
            .keep();
        Self { folder }
    }
}

/// Whether a process has the folder in its command line, as all of Chromium's have.
pub fn in_use(folder: &Path) -> bool {
    let folder = folder.as_os_str().as_encoded_bytes();
    let processes = fs::read_dir("/proc").unwrap();
    let mut commands =
        processes.filter_map(|process| fs::read(process.ok()?.path().join("cmdline")).ok());
    commands.any(|command| memchr::memmem::find(&command, folder).is_some())
}

impl Drop for Home {
    /// A killed script's Chromium ends by itself, some time after, and writes until then.
    fn drop(&mut self) {
        let deadline = Instant::now() + END_TIME;
        while in_use(&self.folder) {
            if Instant::now() > deadline {
                eprintln!("the browser in {} didn't end", self.folder.display());
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("{} is left: {error}", self.folder.display());
        }
    }
}

impl Step {
    pub fn goto(url: impl Into<String>) -> Self {
        Self::Goto(url.into())
    }

    pub fn click(selector: impl Into<String>) -> Self {
        Self::Click(selector.into())
    }

    pub fn fill(selector: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Fill(selector.into(), text.into())
    }

    pub fn read(selector: impl Into<String>) -> Self {
        Self::Read(selector.into())
    }

    pub fn expect_url(pattern: impl Into<String>) -> Self {
        Self::ExpectUrl(pattern.into())
    }

    pub fn expect_text(text: impl Into<String>) -> Self {
        Self::ExpectText(text.into())
    }

    /// Into [`artefact`] of that name.
    pub fn screenshot(name: &str) -> Self {
        Self::Screenshot(artefact(name))
    }
}

/// Where a picture of that name belongs: `test-artefacts/NAME.png` in cargo's target folder.
pub fn artefact(name: &str) -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    // A relative one is meant from the folder of Cargo.toml, where cargo runs tests.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(target)
        .join("test-artefacts");
    fs::create_dir_all(&folder).unwrap();
    folder.join(format!("{name}.png"))
}
