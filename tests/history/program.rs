//! Says what of a recorded run breaks a rule: `cargo run --example check_history -- FILE`, for a file that `make chaos` has
//! written.

#[path = "history.rs"]
#[expect(dead_code, reason = "what writes a file is the chaos test's")]
mod history;

use std::path::Path;
use std::process::ExitCode;

use history::{History, rules};

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("check_history: name the file that make chaos has written");
        return ExitCode::from(2);
    };
    let history = match History::read(Path::new(&file)) {
        Ok(history) => history,
        Err(error) => {
            eprintln!("check_history: {file} can't be read: {error}");
            return ExitCode::from(2);
        }
    };
    let broken = rules::broken(&history);
    for line in &broken {
        println!("{line}");
    }
    let count = history.entries.len();
    println!("{count} messages, {} things are wrong", broken.len());
    ExitCode::from(u8::from(!broken.is_empty()))
}
