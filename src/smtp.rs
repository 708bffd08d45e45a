//! Floor 3: the gateway's backend for the SMTP listeners. The protocol is in its own crate, `mailgate_smtp`.

pub mod backend;
pub(crate) mod reply;
mod suppressed;

#[cfg(test)]
mod tests {
    use mailgate_smtp::listener;

    use super::backend::SubmissionBackend;

    /// Message state is boxed, to keep the size of an idle session small.
    #[test]
    fn an_idle_session_is_a_small_task() {
        let size = listener::task_size::<SubmissionBackend>();
        assert!(size <= 2_560, "{size} bytes");
    }
}
