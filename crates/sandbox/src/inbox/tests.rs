//! An inbox in a temporary folder.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use super::*;

const MAIL: &[u8] =
    b"From: a@x.test\r\nSubject: =?utf-8?q?Gr=C3?=\r\n =?utf-8?q?=BC=C3=9Fe?=\r\n\r\nhi\r\n";

async fn add(inbox: &Inbox, from: &str) -> Arc<ArrivedMessage> {
    let to = ["b@y.test".to_owned()];
    inbox
        .add("ada@sandbox.example", from, &to, Utc::now(), MAIL)
        .await
        .unwrap()
}

#[tokio::test]
async fn newest_first_exact_bytes_and_the_same_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = Inbox::open(folder.path()).unwrap();
    assert!(inbox.list(10).is_empty());
    for number in 0..3 {
        add(&inbox, &format!("{number}@x.test")).await;
    }
    let listed = inbox.list(10);
    let senders: Vec<_> = listed.iter().map(|m| m.envelope_from.as_str()).collect();
    assert_eq!(senders, ["2@x.test", "1@x.test", "0@x.test"]);
    assert_eq!(inbox.list(1), listed[..1]);
    assert_eq!(listed[0].subject.as_deref(), Some("Grüße"));
    assert_eq!(listed[0].size, MAIL.len());
    assert_eq!(inbox.raw(&listed[0].id).await.unwrap().unwrap(), MAIL);

    let again = Inbox::open(folder.path()).unwrap();
    assert_eq!(again.list(10), listed);
    assert_eq!(again.count(), 3);
}

#[tokio::test]
async fn half_written_and_foreign_files_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = Inbox::open(folder.path()).unwrap();
    let whole = add(&inbox, "whole@x.test").await;
    let cut = add(&inbox, "cut@x.test").await;
    let path = |id: &str, kind: &str| folder.path().join(format!("{id}.{kind}"));
    fs::remove_file(path(&cut.id, "json")).unwrap();
    fs::write(folder.path().join("x.json"), "{").unwrap();
    fs::copy(path(&whole.id, "json"), folder.path().join("other.json")).unwrap();
    let again = Inbox::open(folder.path()).unwrap();
    assert_eq!(again.list(10), [whole]);
}

#[tokio::test]
async fn only_the_newest_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = Inbox::open_keeping(folder.path(), 2).unwrap();
    let first = add(&inbox, "1@x.test").await;
    let second = add(&inbox, "2@x.test").await;
    let third = add(&inbox, "3@x.test").await;
    assert_eq!(inbox.list(10), [third.clone(), second]);
    assert_eq!(inbox.raw(&first.id).await.unwrap(), None);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    let fewer = Inbox::open_keeping(folder.path(), 1).unwrap();
    assert_eq!(fewer.list(10), [third]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[tokio::test]
async fn cleared_means_gone_and_no_id_leaves_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("outside.eml"), "secret").unwrap();
    let inbox = Inbox::open(&folder.path().join("inbox")).unwrap();
    let message = add(&inbox, "1@x.test").await;
    assert_eq!(inbox.raw("../outside").await.unwrap(), None);
    inbox.clear().await.unwrap();
    assert_eq!(inbox.count(), 0);
    assert_eq!(inbox.find(&message.id), None);
    assert_eq!(
        fs::read_dir(folder.path().join("inbox")).unwrap().count(),
        0
    );
}

#[tokio::test]
async fn a_removed_one_is_gone_with_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = Inbox::open(folder.path()).unwrap();
    let stays = add(&inbox, "1@x.test").await;
    let goes = add(&inbox, "2@x.test").await;
    assert!(inbox.remove(&goes.id).await.unwrap());
    assert!(!inbox.remove(&goes.id).await.unwrap());
    assert!(!inbox.remove("../outside").await.unwrap());
    assert_eq!(inbox.list(10), [stays]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[tokio::test]
async fn words_are_found_wherever_people_see_them() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = Inbox::open(folder.path()).unwrap();
    let plain = add(&inbox, "plain@x.test").await;
    let mail = "From: =?utf-8?q?Gr=C3=BCn?= <g@x.test>\r\nSubject: Invoice\r\nMIME-Version: 1.0\r\n\
        Content-Type: multipart/mixed; boundary=b\r\n\r\n\
        --b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nPHA+TWFudGljb3JlPC9wPg==\r\n\
        --b\r\nContent-Type: application/pdf; name=\"March.pdf\"\r\nContent-Disposition: attachment\r\n\r\n%PDF\r\n--b--\r\n";
    let to = ["bob@y.test".to_owned()];
    let (mailbox, from) = ("ada@sandbox.example", "rich@x.test");
    let rich = inbox
        .add(mailbox, from, &to, Utc::now(), mail)
        .await
        .unwrap();
    let patience = Duration::from_mins(1);
    for (words, expected) in [
        ("BOB@", vec![&rich]),
        ("invoice  rich@x", vec![&rich]),
        ("manticore", vec![&rich]),
        ("grün", vec![&rich]),
        ("march.PDF", vec![&rich]),
        ("sandbox.example", vec![&rich, &plain]),
        ("grüße", vec![&plain]),
        ("invoice grüße", vec![]),
        ("", vec![&rich, &plain]),
    ] {
        let found = inbox.search(words, 10, patience).await.unwrap();
        assert_eq!(
            found.messages.iter().collect::<Vec<_>>(),
            expected,
            "{words}"
        );
        assert!(found.is_complete);
        assert_eq!(found.searched, 2);
    }
    let first = inbox.search("sandbox", 1, patience).await.unwrap();
    assert_eq!((first.messages, first.is_complete), (vec![rich], true));
    let cut = inbox.search("sandbox", 1, Duration::ZERO).await.unwrap();
    assert_eq!((cut.searched, cut.is_complete), (0, false));
}

#[tokio::test]
async fn what_was_read_stays_read() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = Inbox::open(folder.path()).unwrap();
    let first = add(&inbox, "1@x.test").await;
    let second = add(&inbox, "2@x.test").await;
    assert_eq!(inbox.unread(), 2);
    inbox.mark_read(&first.id).await.unwrap();
    inbox.mark_read("../outside").await.unwrap();
    assert!(inbox.find(&first.id).unwrap().read);
    assert!(!inbox.find(&second.id).unwrap().read);
    let again = Inbox::open(folder.path()).unwrap();
    assert_eq!(again.list(10), inbox.list(10));
    assert_eq!(again.unread(), 1);
    again.mark_all_read().await.unwrap();
    assert_eq!(Inbox::open(folder.path()).unwrap().unread(), 0);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[tokio::test]
async fn a_mark_does_not_bring_back_what_was_removed() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = Inbox::open(folder.path()).unwrap();
    let message = add(&inbox, "1@x.test").await;
    inbox.remove(&message.id).await.unwrap();
    inbox.shared.write_mark(&message).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn descriptions_without_a_mark_are_unread() {
    let folder = tempfile::tempdir().unwrap();
    let inbox = Inbox::open(folder.path()).unwrap();
    let message = add(&inbox, "1@x.test").await;
    let path = folder.path().join(format!("{}.json", message.id));
    let older = fs::read_to_string(&path)
        .unwrap()
        .replace(",\"read\":false", "");
    assert!(!older.contains("read\":"), "{older}");
    fs::write(&path, older).unwrap();
    assert_eq!(Inbox::open(folder.path()).unwrap().list(1), [message]);
}
