//! What a test has the stand-in do, and what it asks it afterwards.

use serde_json::{Value, json};

use super::fault::Fault;
use super::{GmailStandIn, SentMessage};

impl GmailStandIn {
    /// The next send fails so.
    pub fn fail_once(&self, fault: Fault) {
        self.account().faults.push_back(fault);
    }

    /// From now on this access token is refused with 401.
    pub fn refuse_token(&self, token: &str) {
        self.account().refused_tokens.insert(token.to_owned());
    }

    /// From now on reading is answered so.
    pub fn fail_reading(&self, status: u16, body: Value) {
        self.account().read_fault = Some((status, body));
    }

    /// From now on reading what ends so (`?raw` is any whole message) is answered so.
    pub fn fail_reading_at(&self, end: &str, status: u16, body: Value) {
        let fault = (end.to_owned(), status, body);
        self.account().faults_at.push(fault);
    }

    /// From now on reading succeeds.
    pub fn heal(&self) {
        let mut account = self.account();
        account.read_fault = None;
        account.faults_at.clear();
    }

    /// What the mailbox may send as from now on beside its own address: with the status of its verification.
    pub fn set_send_as(&self, entries: &[(&str, &str)]) {
        let entries = entries.iter().map(|(address, status)| {
            json!({
                "sendAsEmail": address,
                "displayName": "Ada",
                "replyToAddress": "",
                "signature": "<div>Ada</div>",
                "treatAsAlias": true,
                "verificationStatus": status,
            })
        });
        self.account().send_as = entries.collect();
    }

    /// From now on the list of what the mailbox may send as is answered so.
    pub fn fail_send_as(&self, fault: Option<(u16, String)>) {
        self.account().send_as_fault = fault;
    }

    /// How often the list was asked for.
    pub fn send_as_reads(&self) -> usize {
        self.account().send_as_reads
    }

    /// What was sent, oldest first.
    pub fn sent(&self) -> Vec<SentMessage> {
        self.account().sent.clone()
    }

    /// The targets of all requests, in order.
    pub fn asked(&self) -> Vec<String> {
        self.account().asked.clone()
    }

    /// A message comes in; answers its id.
    pub fn receive(&self, headers: &[(&str, &str)], at: i64) -> String {
        self.account().mailbox.receive(headers, at)
    }

    /// A mail client saves a copy of its own among the sent mail.
    pub fn save_among_sent(&self, raw: &[u8]) {
        self.account().mailbox.keep_sent(raw);
    }

    /// A whole message comes in under `INBOX` or `SPAM`; answers its id.
    pub fn receive_raw(&self, label: &'static str, raw: &[u8], at: i64) -> String {
        self.account().mailbox.receive_raw(label, raw, at)
    }

    /// A message is deleted, while lists still name it.
    pub fn lose(&self, id: &str) {
        self.account().mailbox.lose(id);
    }

    /// What is sent gets a Message-ID of Gmail's own from now on.
    pub fn rename_message_ids(&self) {
        self.account().mailbox.rename();
    }

    /// History from before now is no longer there.
    pub fn forget_history(&self) {
        self.account().mailbox.forget_history();
    }
}
