//! What a test has the stand-in do, and what it asks it afterwards.

use serde_json::Value;

use super::GraphStandIn;
use super::fault::{Call, Fault};
use super::kept::Kept;

impl GraphStandIn {
    /// What the directory says of the account instead.
    pub fn set_account(&self, account: Value) {
        self.shared.lock().account = account;
    }

    /// The account is a personal one.
    pub fn leave_the_directory(&self) {
        self.shared.lock().no_directory = true;
    }

    /// A mail client saves a copy of its own among the sent mail.
    pub fn save_among_sent(&self, message_id: &str) {
        self.shared.lock().sent.push(Kept {
            message_id: message_id.to_owned(),
            mime: format!("Message-ID: {message_id}\r\n\r\nHi").into(),
            ..Kept::default()
        });
    }

    /// What was sent is found by its Message-ID alone.
    pub fn forget_ids(&self) {
        self.shared.lock().keeps_ids = false;
    }

    /// The scope of each request for a token so far.
    pub fn scopes_asked(&self) -> Vec<String> {
        self.shared.lock().scopes_asked.clone()
    }

    /// The next such call is answered so; several queue up.
    pub fn once(&self, call: Call, fault: Fault) {
        let mut mailbox = self.shared.lock();
        mailbox.faults.entry(call).or_default().push_back(fault);
    }

    /// How many such calls there were, whatever was answered.
    pub fn count(&self, call: Call) -> usize {
        let mailbox = self.shared.lock();
        mailbox.calls.iter().filter(|made| **made == call).count()
    }

    /// What was sent, oldest first. Nothing was against the real interface's rules so far.
    pub fn sent(&self) -> Vec<Kept> {
        let mailbox = self.shared.lock();
        assert_eq!(mailbox.violations, Vec::<String>::new());
        mailbox.sent.clone()
    }

    /// Drafts that lie in the mailbox.
    pub fn drafts(&self) -> usize {
        self.shared.lock().drafts.len()
    }

    /// No token that was issued so far is good any longer.
    pub fn refuse_tokens(&self) {
        let mut mailbox = self.shared.lock();
        for number in 1..=mailbox.tokens {
            mailbox.refused.insert(format!("access-{number}"));
        }
    }

    /// A token, for a test that reads by itself.
    pub fn issue(&self) -> String {
        let mut mailbox = self.shared.lock();
        mailbox.tokens += 1;
        format!("access-{}", mailbox.tokens)
    }

    pub fn refreshes(&self) -> usize {
        self.shared.lock().refreshes
    }

    /// Every draft gets this Message-ID, as Exchange was seen to do.
    pub fn rewrite_message_ids(&self, message_id: &str) {
        self.shared.lock().rewritten = Some(message_id.to_owned());
    }

    /// Upload sessions are said to be there.
    pub fn say_upload_url(&self, address: &str) {
        self.shared.lock().upload_url = Some(address.to_owned());
    }

    /// A message comes into the inbox: an entry as the delta query tells it.
    pub fn receive(&self, entry: Value) {
        self.shared.lock().inbox.push(entry);
    }

    /// A change among the junk.
    pub fn receive_junk(&self, entry: Value) {
        self.shared.lock().junk.push(entry);
    }

    /// What a received message is in MIME.
    pub fn set_whole(&self, id: &str, mime: &[u8]) {
        self.shared
            .lock()
            .whole
            .insert(id.to_owned(), mime.to_vec());
    }
}
