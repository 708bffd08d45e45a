//! The end of the process as an SMTP client sees it.

use super::{RECIPIENT, message};
use crate::support::gateway::Gateway;
use crate::support::smtp_client::SmtpClient;

#[tokio::test(flavor = "multi_thread")]
async fn the_end_waits_for_a_message_and_for_nothing_else() {
    let gateway = Gateway::start().await;
    let inbox = gateway.sandbox.inbox.clone();
    let mut clear = SmtpClient::connect(gateway.starttls_address()).await;
    clear.reply().await;
    let mut between = SmtpClient::authenticated(&gateway).await;
    let reply = between.submit(RECIPIENT, &message("before")).await;
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    let mut envelope = SmtpClient::authenticated(&gateway).await;
    envelope.command("MAIL FROM:<ada@sandbox.example>").await;
    let mut within = SmtpClient::authenticated(&gateway).await;
    within.begin_data(RECIPIENT).await;
    let content = message("within");
    within.write(&content[..20]).await;
    let clients = async {
        for client in [&mut clear, &mut between, &mut envelope] {
            let reply = client.reply().await;
            assert!(reply.starts_with("421 4.3.2"), "{reply}");
            assert_eq!(client.next_reply().await, None);
        }
        within.write(&content[20..]).await;
        within.write(b"\r\n.\r\n").await;
        let reply = within.reply().await;
        assert!(reply.starts_with("250 2.0.0 log_"), "{reply}");
        let reply = within.reply().await;
        assert!(reply.starts_with("421 4.3.2"), "{reply}");
        assert_eq!(within.next_reply().await, None);
    };
    tokio::join!(gateway.stop(), clients);
    let subjects: Vec<_> = inbox
        .list(usize::MAX)
        .iter()
        .map(|arrived| arrived.subject.clone().unwrap_or_default())
        .collect();
    assert_eq!(subjects, ["within", "before"]);
}
