//! The fields of send keys, in requests and responses.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::field::{Field, List};
use crate::http::problem::{FieldError, Problem};
use crate::http::values::{checked_expiry, checked_list, checked_name};
use mailgate_domain::accounts::{
    MOST_MAILBOXES_OF_A_KEY, NewSendKey, SendKeyChange, SendKeyRow, ShownSendKey,
};
use mailgate_types::expires_at::Expiry;
use mailgate_types::ids::CredentialId;
use mailgate_types::moment::iso8601;
use mailgate_types::networks::{MOST_NETWORKS, Network, Networks};

/// A new send key.
#[derive(Deserialize, Default, ToSchema)]
pub(crate) struct CreateSendKeyRequest {
    /// What the key is for.
    #[schema(value_type = String, required, min_length = 1, max_length = 255, example = "Invoices", pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$")]
    name: Field<String>,
    /// When it expires: RFC 3339 with an offset, up to ten years ahead. Never, if omitted or empty.
    #[schema(value_type = Option<String>, max_length = 100, example = "2027-11-02T09:30:00Z")]
    expires_at: Field<String>,
    /// The client addresses that may use the key: IP addresses, or networks in CIDR notation. Any address, if
    /// omitted or empty.
    #[schema(value_type = Option<Vec<String>>, max_items = 50, example = json!(["192.0.2.0/24", "2001:db8::/32"]))]
    allowed_addresses: Field<List<String>>,
    /// The app's mailboxes that the key may send from, `cred_…`. All of them, if omitted or empty.
    #[schema(value_type = Option<Vec<String>>, max_items = 100, example = json!(["cred_01h2xcejqtf2nbrexx3vqjhp41"]))]
    credential_ids: Field<List<String>>,
}

/// Changes to a send key. Omitted fields stay as they are.
#[derive(Deserialize, Default, ToSchema)]
pub(crate) struct ChangeSendKeyRequest {
    /// What the key is for.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, example = "Invoices", pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$")]
    name: Field<String>,
    /// When it expires: RFC 3339 with an offset, up to ten years ahead. Empty: never.
    #[schema(value_type = Option<String>, max_length = 100, example = "2027-11-02T09:30:00Z")]
    expires_at: Field<String>,
    /// The complete list of addresses and networks that may use the key. Empty: any address.
    #[schema(value_type = Option<Vec<String>>, max_items = 50, example = json!(["192.0.2.0/24", "2001:db8::/32"]))]
    allowed_addresses: Field<List<String>>,
    /// The complete list of mailboxes that the key may send from, `cred_…`. Empty: all of them.
    #[schema(value_type = Option<Vec<String>>, max_items = 100, example = json!(["cred_01h2xcejqtf2nbrexx3vqjhp41"]))]
    credential_ids: Field<List<String>>,
}

/// A send key, without its value.
#[derive(Serialize, ToSchema)]
pub(crate) struct SendKeyItem {
    /// `skey_…`
    #[schema(example = "skey_01h2xcejqtf2nbrexx3vqjhp41")]
    id: String,
    /// What the key is for.
    #[schema(example = "Invoices")]
    name: String,
    /// Whether it is the app's main key, which `reset-send-key` renews, and which can't be restricted or deleted.
    #[schema(example = false)]
    is_main: bool,
    /// ISO 8601, UTC; for the main key, when it was last renewed.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was last used, to within about a minute, ISO 8601, UTC; null if it was never used.
    #[schema(format = DateTime, required, example = "2026-11-02T09:30:00.000Z")]
    last_used_at: Option<String>,
    /// When it expires, ISO 8601, UTC; null if never.
    #[schema(format = DateTime, required, example = "2027-11-02T09:30:00.000Z")]
    expires_at: Option<String>,
    /// The networks that may use the key; empty: any address.
    #[schema(example = json!(["192.0.2.0/24", "2001:db8::/32"]))]
    allowed_addresses: Vec<String>,
    /// The mailboxes that the key may send from, `cred_…`; empty: all of the app's.
    #[schema(example = json!(["cred_01h2xcejqtf2nbrexx3vqjhp41"]))]
    credential_ids: Vec<String>,
}

/// An app's send keys.
#[derive(Serialize, ToSchema)]
pub(crate) struct SendKeyList {
    /// The main one first, then oldest first.
    pub(crate) send_keys: Vec<SendKeyItem>,
}

/// A new send key.
#[derive(Serialize, ToSchema)]
pub(crate) struct CreatedSendKey {
    #[serde(flatten)]
    pub(crate) item: SendKeyItem,
    /// `sek_…`: the key itself, which is shown only in this response.
    pub(crate) send_key: String,
}

impl SendKeyItem {
    pub(crate) fn new(shown: ShownSendKey) -> Self {
        let SendKeyRow {
            id,
            name,
            created_at,
            last_used_at,
            expires_at,
            allowed_addresses,
            credential_ids,
        } = shown.key;
        Self {
            id: id.to_string(),
            name,
            is_main: shown.is_main,
            created_at: iso8601(created_at),
            last_used_at: last_used_at.map(iso8601),
            expires_at: expires_at.map(iso8601),
            allowed_addresses,
            credential_ids: credential_ids.iter().map(ToString::to_string).collect(),
        }
    }

    pub(crate) fn additional(key: SendKeyRow) -> Self {
        Self::new(ShownSendKey {
            is_main: false,
            key,
        })
    }
}

impl CreateSendKeyRequest {
    pub(crate) fn validate(self, now: DateTime<Utc>) -> Result<NewSendKey, Problem> {
        let mut errors = Vec::new();
        let name = self.name.required("name", &mut errors);
        let name = checked_name("name", name, &mut errors);
        let expires_at = checked_expiry(self.expires_at, now, &mut errors);
        let allowed = checked_networks(self.allowed_addresses, &mut errors);
        let mailboxes = checked_mailboxes(self.credential_ids, &mut errors);
        match name {
            Some(name) if errors.is_empty() => Ok(NewSendKey {
                name,
                expires_at: expires_at.and_then(Expiry::time),
                allowed: allowed.unwrap_or_default(),
                mailboxes: mailboxes.unwrap_or_default(),
            }),
            _ => Err(Problem::fields(errors)),
        }
    }
}

impl ChangeSendKeyRequest {
    pub(crate) fn validate(self, now: DateTime<Utc>) -> Result<SendKeyChange, Problem> {
        let mut errors = Vec::new();
        let name = self.name.optional("name", &mut errors);
        let change = SendKeyChange {
            name: checked_name("name", name, &mut errors),
            expires_at: checked_expiry(self.expires_at, now, &mut errors),
            allowed: checked_networks(self.allowed_addresses, &mut errors),
            mailboxes: checked_mailboxes(self.credential_ids, &mut errors),
        };
        if errors.is_empty() {
            Ok(change)
        } else {
            Err(Problem::fields(errors))
        }
    }
}

fn checked_networks(given: Field<List<String>>, errors: &mut Vec<FieldError>) -> Option<Networks> {
    let read = |text: &str| text.parse::<Network>();
    let list = given.optional("allowed_addresses", errors);
    let networks = checked_list("allowed_addresses", list, MOST_NETWORKS, read, errors);
    networks.map(|networks| networks.into_iter().collect())
}

fn checked_mailboxes(
    given: Field<List<String>>,
    errors: &mut Vec<FieldError>,
) -> Option<BTreeSet<CredentialId>> {
    let read = |text: &str| (text.parse()).map_err(|_| "must be the ID of a mailbox, cred_…");
    let list = given.optional("credential_ids", errors);
    let ids = checked_list(
        "credential_ids",
        list,
        MOST_MAILBOXES_OF_A_KEY,
        read,
        errors,
    );
    ids.map(|ids| ids.into_iter().collect())
}
