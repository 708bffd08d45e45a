//! Floor 3: what the SMTP listeners do with a message. The protocol is in its own crate, `mailgate_smtp`.

pub mod backend;
pub(crate) mod reply;
mod suppressed;

#[cfg(test)]
mod tests {
    use mailgate_smtp::listener;

    use super::backend::SubmissionBackend;

    /// What a session takes while it idles is kept small by boxing what only a message needs.
    #[test]
    fn an_idle_session_is_a_small_task() {
        let size = listener::task_size::<SubmissionBackend>();
        assert!(size <= 2_560, "{size} bytes");
    }
}
