//! The fields of a message: two bodies, and some with a file.

use super::SeedError;
use super::plan::Plan;
use mailgate_domain::compose::{Attachment, CustomHeader, Fields, Filename, MediaType};
use mailgate_types::email_address::EmailAddress;

/// The media type of all files.
const PDF: &str = "application/pdf";

/// The HTML of a letter, with `{text}` and `{sender}`.
const LETTER: &str = include_str!("letter.html");

/// The reply that a message answers, and the message that this one answers.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) reply: String,
    pub(super) first: String,
}

/// As the app would send them to `POST /send`.
pub(super) fn fields(plan: &Plan, thread: Option<Thread>) -> Result<Fields, SeedError> {
    let address =
        |text: &String| EmailAddress::parse(text).map_err(|_| SeedError::Text(text.clone()));
    let escaped = plan.text.replace('&', "&amp;").replace('<', "&lt;");
    let html = LETTER
        .replace("{text}", &escaped)
        .replace("{sender}", plan.person().name);
    let mut headers = Vec::new();
    if let Some(Thread { reply, first }) = thread {
        for (name, value) in [
            ("In-Reply-To", reply.clone()),
            ("References", format!("{first} {reply}")),
        ] {
            headers.push(CustomHeader::new(name, &value).map_err(|_| SeedError::Text(value))?);
        }
    }
    let file = plan.file.clone().map(|name| {
        Ok::<_, SeedError>(Attachment {
            filename: Filename::new(name.clone()).map_err(|_| SeedError::Text(name))?,
            media_type: MediaType::parse(PDF).map_err(|_| SeedError::Text(PDF.to_owned()))?,
            content: pdf(&plan.subject),
            content_id: None,
        })
    });
    Ok(Fields {
        from_name: Some(plan.person().name.to_owned()),
        to: address(&plan.to)?,
        cc: plan.cc.iter().map(address).collect::<Result<_, _>>()?,
        bcc: plan.bcc.iter().map(address).collect::<Result<_, _>>()?,
        reply_to: None,
        subject: plan.subject.clone(),
        text: Some(plan.text.clone()),
        html: Some(html),
        headers,
        attachments: file.transpose()?.into_iter().collect(),
    })
}

/// A page with nothing on it, and padding as large as an invoice.
fn pdf(subject: &str) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
        3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]>>endobj\n"
        .to_vec();
    let lines = 200 + subject.len() % 7 * 120;
    file.extend(b"% Mailgate's sandbox has made this file.\n".repeat(lines));
    file.extend(b"trailer<</Root 1 0 R>>\n%%EOF\n");
    file
}
