//! The program itself: its command line, its settings, its ends and its memory, in child processes.

mod database_tls;
pub mod dev;
mod dev_again;
mod healthcheck;
mod memory;
mod open_files;
mod pictures;
pub mod process;
mod seeded;
pub mod serve;
mod start_failures;
mod wrong_settings;
mod wrong_settings_words;
