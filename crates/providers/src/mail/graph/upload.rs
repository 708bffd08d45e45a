//! Attaches files to a draft: small ones in one request, larger ones through an upload session, piece by piece.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::Graph;
use super::api::{GraphContent, Patience, encoded};
use super::draft::attachment::Attachment;
use super::verdict::{Stage, of_answer, of_broken_call};
use crate::mail::transport::MailboxAccess;
use crate::mail::verdict::{Failure, Verdict};

/// Files from this size are attached through an upload session.
const SMALL: usize = 3_000_000;

/// Bytes of one piece: a multiple of 320 KiB, as the API requires, below 4 MB.
const PIECE: usize = 12 * 320 * 1024;

impl Graph {
    /// Attaches a file to a draft.
    pub(super) async fn attach(
        &self,
        account: &MailboxAccess,
        draft: &str,
        attachment: Attachment,
        patience: Patience,
    ) -> Result<(), Verdict> {
        if attachment.content.len() < SMALL {
            self.attach_small(account, draft, attachment, patience)
                .await
        } else {
            self.attach_large(account, draft, attachment, patience)
                .await
        }
    }

    async fn attach_small(
        &self,
        account: &MailboxAccess,
        draft: &str,
        attachment: Attachment,
        patience: Patience,
    ) -> Result<(), Verdict> {
        let mut fields = fields(&attachment);
        fields.insert(
            "@odata.type".to_owned(),
            "#microsoft.graph.fileAttachment".into(),
        );
        fields.insert(
            "contentBytes".to_owned(),
            STANDARD.encode(&attachment.content).into(),
        );
        drop(attachment);
        let path = format!("/messages/{}/attachments", encoded(draft));
        let content = GraphContent::Json(Value::Object(fields));
        let created = self.create_at(&path, account, content, patience);
        created.await.map(|_| ())
    }

    async fn attach_large(
        &self,
        account: &MailboxAccess,
        draft: &str,
        attachment: Attachment,
        patience: Patience,
    ) -> Result<(), Verdict> {
        let mut fields = fields(&attachment);
        fields.insert("attachmentType".to_owned(), "file".into());
        fields.insert("size".to_owned(), attachment.content.len().into());
        let path = format!(
            "/messages/{}/attachments/createUploadSession",
            encoded(draft)
        );
        let content = GraphContent::Json(json!({ "AttachmentItem": fields }));
        let created = self.create_at(&path, account, content, patience);
        let session = created.await?.json();
        let Some(address) = session["uploadUrl"].as_str() else {
            return Err(nonsense("names no address to upload to"));
        };
        if !self.api.may_upload_to(address) {
            return Err(nonsense("names an address to upload to that isn't https"));
        }
        let whole = attachment.content;
        for start in (0..whole.len()).step_by(PIECE) {
            let end = whole.len().min(start + PIECE);
            let range = format!("bytes {start}-{}/{}", end - 1, whole.len());
            let answer = self
                .api
                .upload(address, range, whole.slice(start..end), patience)
                .await
                .map_err(|error| of_broken_call(Stage::Upload, error))?;
            // The last piece creates the attachment; those before it are only accepted.
            let taken = match answer.status {
                201 => true,
                200 | 202 => end < whole.len(),
                _ => false,
            };
            if !taken {
                return Err(of_answer(Stage::Upload, &answer));
            }
        }
        Ok(())
    }
}

/// The fields common to both ways.
fn fields(attachment: &Attachment) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("name".to_owned(), attachment.name.as_str().into());
    fields.insert(
        "contentType".to_owned(),
        attachment.content_type.as_str().into(),
    );
    fields.insert("isInline".to_owned(), attachment.is_inline.into());
    if let Some(id) = &attachment.content_id {
        fields.insert("contentId".to_owned(), id.as_str().into());
    }
    fields
}

/// A response with the right status that can't be used.
pub(super) fn nonsense(what: &str) -> Verdict {
    Verdict::temporary(Failure::own(format!("Microsoft Graph's answer {what}")))
}
