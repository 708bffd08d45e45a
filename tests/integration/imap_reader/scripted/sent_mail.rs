//! The mailbox of sent mail, and what is found there.

use mailgate_providers::mail::sent_copy::Found;

use super::{Answer, GREETING, Server, TOKEN, obedient};
use crate::imap_reader::{account, failure};
use crate::support::sought;

#[tokio::test]
async fn the_mailbox_of_sent_mail() {
    // By its mark, asked for where the server can be asked; by its name.
    let servers: [(Answer, &str, Found); 3] = [
        (
            |line| {
                match line {
                "CAPABILITY" => "* CAPABILITY SPECIAL-USE LIST-EXTENDED\r\n{tag} OK\r\n".to_owned(),
                "LIST \"\" \"*\" RETURN (SPECIAL-USE)" => 
                    "* LIST () \"/\" Sent\r\n* LIST (\\Sent) \"/\" \"Gesendet \\\"x\\\"\"\r\n{tag} OK\r\n"
                        .to_owned(),
                "UID SEARCH HEADER Message-ID \"<a@b>\"" => "* SEARCH 3\r\n{tag} OK\r\n".to_owned(),
                _ => obedient(line),
            }
            },
            "EXAMINE \"Gesendet \\\"x\\\"\"",
            Found::OtherCopies,
        ),
        (
            |line| match line {
                "LIST \"\" \"*\"" => {
                    "* LIST () \"/\" Sent\r\n* LIST (\\Sent) \"/\" {2}\r\nab\r\n{tag} OK\r\n"
                        .to_owned()
                }
                _ => obedient(line),
            },
            "EXAMINE \"ab\"",
            Found::Nothing,
        ),
        (
            |line| match line {
                "LIST \"\" \"*\"" => {
                    "* LIST (\\Noselect) \".\" INBOX\r\n* LIST () \".\" INBOX.Sent\r\n{tag} OK\r\n"
                        .to_owned()
                }
                _ => obedient(line),
            },
            "EXAMINE \"INBOX.Sent\"",
            Found::Nothing,
        ),
    ];
    for (answer, opened, found) in servers {
        let server = Server::start("* OK hi\r\n", answer).await;
        let reader = server.reader();
        let looked = reader.find_sent(&account(TOKEN), sought("<a@b>")).await;
        assert_eq!(looked.unwrap(), found);
        let said = server.said();
        let examined: Vec<_> = said
            .iter()
            .filter(|line| line.starts_with("EXAMINE"))
            .collect();
        assert_eq!(examined, [opened]);
    }
    // One that is hidden, or not known as such, was not looked into.
    let server = Server::start(GREETING, obedient).await;
    let failed = server
        .reader()
        .find_sent(&account(TOKEN), sought("<a@b>"))
        .await;
    assert_eq!(failure(failed).0, "forbidden");
    // A mailbox that can't be opened was not looked into.
    let server = Server::start(GREETING, |line| match line.split(' ').next() {
        Some("LIST") => "* LIST (\\Sent) \"/\" Sent\r\n{tag} OK\r\n".to_owned(),
        Some("EXAMINE") => "{tag} NO [NOPERM] not yours\r\n".to_owned(),
        _ => obedient(line),
    });
    let server = server.await;
    let reader = server.reader();
    let failed = reader.find_sent(&account(TOKEN), sought("<a@b>")).await;
    assert_eq!(failure(failed).0, "forbidden");
}
