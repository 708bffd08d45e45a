//! The texts of the notices, plain and HTML.

use std::fmt::Write as _;
use std::net::IpAddr;

use askama::Template;
use chrono::{DateTime, TimeDelta, Utc};
use url::{Host, Url};

use mailgate_types::email_change::{CONFIRMED_WITHIN, EmailChangeStep, UNDONE_WITHIN};
use mailgate_types::notice::{AmountDue, Notice, RenewalReader};
use mailgate_types::plain_name::plain_name;

/// A notice's text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) subject: String,
    pub(super) text: String,
    pub(super) html: String,
}

/// A notice's paragraphs, and the page that it links to.
#[derive(Template)]
#[template(path = "notice.html")]
struct Draft {
    subject: String,
    paragraphs: Vec<String>,
    links: Vec<(&'static str, String)>,
}

/// `label` is the subscriber's own name for the account, `page` the page that the notice links to.
pub(super) fn write(notice: &Notice, label: &str, page: Option<&str>) -> Words {
    let label = plain_name(label);
    let mut draft = match notice {
        Notice::PaymentFailed {
            amount_due,
            payment_url,
            next_attempt,
        } => payment_failed(&label, amount_due, payment_url.as_deref(), *next_attempt),
        Notice::PaymentActionRequired {
            amount_due,
            payment_url,
        } => action_required(&label, amount_due, payment_url.as_deref()),
        Notice::TrialWillEnd {
            trial_end,
            has_payment_method,
        } => trial_will_end(&label, *trial_end, *has_payment_method),
        Notice::ApiSecretRenewed {
            at,
            address,
            reader,
            ..
        } => {
            return api_secret_renewed(&label, (*at, *address), *reader, web_link(page)).written();
        }
        Notice::AccountSuspended { at, reason } => {
            return suspended(&label, *at, reason, web_link(page)).written();
        }
        Notice::AccountResumed { at } => return resumed(&label, *at, web_link(page)).written(),
        Notice::EmailChange {
            step,
            email,
            at,
            address,
            ..
        } => return email_change(&label, (*step, *at, *address), email, web_link(page)).written(),
    };
    let billing_page = web_link(page).map(|url| ("Billing page", url));
    draft.links.extend(billing_page);
    draft.written()
}

const BLOCKED: &str = "Sending is blocked for this account, by REST and by SMTP, until the payment succeeds. You won't \
    need to set anything up again afterwards.";

fn payment_failed(
    label: &str,
    due: &AmountDue,
    url: Option<&str>,
    next_attempt: Option<DateTime<Utc>>,
) -> Draft {
    let mut paragraphs = vec![
        format!("The payment of {} for \"{label}\" failed.", due.with_code()),
        BLOCKED.to_owned(),
        "Please update the payment method on the billing page of your account.".to_owned(),
    ];
    if let Some(next) = next_attempt {
        let again = format!("The payment will be tried again on {}.", moment(next));
        paragraphs.push(again);
    }
    Draft {
        subject: format!("Payment failed: sending is blocked for \"{label}\""),
        paragraphs,
        links: Vec::from_iter(web_link(url).map(|url| ("See the invoice", url))),
    }
}

fn action_required(label: &str, due: &AmountDue, url: Option<&str>) -> Draft {
    let link = web_link(url);
    let what = if link.is_some() {
        "Your bank requires you to confirm it. Please follow the link to do so."
    } else {
        "Your bank requires you to confirm it. Please do so on the billing page of your account."
    };
    Draft {
        subject: format!("Please confirm the payment for \"{label}\""),
        paragraphs: vec![
            format!(
                "Your payment of {} for \"{label}\" needs your confirmation.",
                due.with_code()
            ),
            what.to_owned(),
            BLOCKED.to_owned(),
        ],
        links: Vec::from_iter(link.map(|url| ("Confirm the payment", url))),
    }
}

fn trial_will_end(label: &str, trial_end: DateTime<Utc>, has_payment_method: bool) -> Draft {
    let what = if has_payment_method {
        "Your payment method is on file, so sending continues without interruption; the first payment is made then."
    } else {
        "There is no payment method on file. Without one, the subscription ends with the trial, and sending stops. \
         Please add one on the billing page of your account."
    };
    Draft {
        subject: format!("The trial of \"{label}\" ends soon"),
        paragraphs: vec![
            format!("The trial of \"{label}\" ends on {}.", moment(trial_end)),
            what.to_owned(),
        ],
        links: Vec::new(),
    }
}

/// An address that someone else may have chosen: an internationalized domain is shown with its encoded form.
fn shown(email: &str) -> String {
    let domain = email.rsplit_once('@').map_or("", |(_, domain)| domain);
    match Host::parse(domain) {
        Ok(Host::Domain(ascii)) if !domain.eq_ignore_ascii_case(&ascii) => {
            format!("{email} (the domain {ascii})")
        }
        _ => email.to_owned(),
    }
}

/// The origin of a request.
fn by(address: Option<IpAddr>) -> String {
    address.map_or_else(
        || "by the operator".to_owned(),
        |address| format!("from {address}"),
    )
}

/// `email` is the new address.
fn email_change(
    label: &str,
    (step, at, address): (EmailChangeStep, DateTime<Utc>, Option<IpAddr>),
    email: &str,
    link: Option<String>,
) -> Draft {
    let within = |time: TimeDelta| {
        let until = at.checked_add_signed(time).unwrap_or(at);
        format!("within {} hours, until {}", time.num_hours(), moment(until))
    };
    let undone_within = within(UNDONE_WITHIN);
    let confirmed_within = within(CONFIRMED_WITHIN);
    let (at, by, email) = (moment(at), by(address), shown(email));
    let not_you = "If it wasn't you, somebody else has access to your account";
    let then = "rotate the API secret and end everything that was created with it";
    let (subject, paragraphs, words) = match step {
        // This address is unconfirmed: the mail contains no text that someone could have chosen.
        EmailChangeStep::Confirm => (
            "Confirm this address for an email gateway account".to_owned(),
            vec![
                format!(
                    "Somebody, most likely you, wants this to be the address of an email gateway account. It was asked for on \
                     {at}."
                ),
                format!(
                    "Follow the link {confirmed_within}, to confirm it. From then on, sign-in links and notices come here."
                ),
                "If it wasn't you, you can ignore this mail: nothing changes.".to_owned(),
            ],
            "Confirm the address",
        ),
        EmailChangeStep::Requested => (
            format!("The address of \"{label}\" is about to change"),
            vec![
                format!(
                    "On {at}, {by}, somebody asked for the address of \"{label}\" to become {email}. It changes once a \
                     link that is mailed there is followed; until then this one stays."
                ),
                "If it was you, nothing is left to do here.".to_owned(),
                format!("{not_you}: follow the link to stop the change, then {then}."),
            ],
            "Stop the change",
        ),
        EmailChangeStep::Changed | EmailChangeStep::ChangedAgain => (
            format!("The address of \"{label}\" has changed"),
            vec![
                format!(
                    "On {at}, {by}, the address of \"{label}\" became {email}. Sign-in links and notices go there now."
                ),
                "If it was you, nothing is left to do.".to_owned(),
                match (step, link.is_some()) {
                    (_, true) => format!(
                        "{not_you}: follow the link {undone_within}, to take this address back and {then}."
                    ),
                    (EmailChangeStep::ChangedAgain, false) => format!(
                        "{not_you}: {then}. This address was the account's for so short a time that only the one before it \
                         got a link to undo this."
                    ),
                    (_, false) => format!(
                        "{not_you}: {then}; {undone_within}, that also takes this address back. Or ask the operator of this \
                         service."
                    ),
                },
            ],
            "Take this address back",
        ),
        EmailChangeStep::Restored => (
            format!("The address of \"{label}\" is its former one again"),
            vec![
                format!(
                    "On {at}, {by}, the address of \"{label}\" became {email} again, as it was before it was changed to this \
                     one. Sign-in links and notices go there now."
                ),
                "If that isn't what you want, change the address once more. It was taken back by who reads the former one, or by \
                 who has the API secret."
                    .to_owned(),
            ],
            "",
        ),
        EmailChangeStep::Set => (
            format!("The address of \"{label}\" has changed"),
            vec![
                format!(
                    "On {at}, {by}, the address of \"{label}\" became {email}. Sign-in links and notices go there now."
                ),
                "If you didn't ask for that, ask the operator of this service.".to_owned(),
            ],
            "",
        ),
    };
    Draft {
        subject,
        paragraphs,
        links: Vec::from_iter(link.map(|url| (words, url))),
    }
}

/// `sign_in` is the portal's page that mails links.
fn suspended(label: &str, at: DateTime<Utc>, reason: &str, sign_in: Option<String>) -> Draft {
    Draft {
        subject: format!("\"{label}\" is suspended"),
        paragraphs: vec![
            format!(
                "On {}, the operator of this service suspended the account \"{label}\". The reason given:",
                moment(at)
            ),
            reason.to_owned(),
            "No message is accepted until the account is resumed, by REST or by SMTP, and no mailbox can be connected. \
             Messages that wait leave afterwards, unless they have become too old. Your apps, keys and mailboxes stay, and so \
             does your subscription, if there is one."
                .to_owned(),
            "Please contact the operator of this service about it.".to_owned(),
        ],
        links: Vec::from_iter(sign_in.map(|url| ("Sign in", url))),
    }
}

fn resumed(label: &str, at: DateTime<Utc>, sign_in: Option<String>) -> Draft {
    Draft {
        subject: format!("\"{label}\" is no longer suspended"),
        paragraphs: vec![
            format!(
                "On {}, the operator of this service resumed the account \"{label}\".",
                moment(at)
            ),
            "As far as its subscription permits, messages are accepted again and those that waited leave, and mailboxes can be connected.".to_owned(),
        ],
        links: Vec::from_iter(sign_in.map(|url| ("Sign in", url))),
    }
}

/// `sign_in` is the portal's page that mails links.
fn api_secret_renewed(
    label: &str,
    (at, address): (DateTime<Utc>, Option<IpAddr>),
    reader: RenewalReader,
    sign_in: Option<String>,
) -> Draft {
    let by = by(address);
    let then = match (reader, &sign_in) {
        (RenewalReader::Established, Some(_)) => {
            "Have a link mailed to this address, choose to sign in and rotate the API secret in the same step, and tick the \
             box that ends all additional keys. Or ask the operator of this service."
        }
        (RenewalReader::Former, Some(_)) => {
            "This address was the account's until recently: take it back by the link in the mail that said so, and rotate \
             the API secret in the same step. Or ask the operator of this service."
        }
        _ => "Ask the operator of this service to rotate it again.",
    };
    let sign_in = sign_in.filter(|_| reader == RenewalReader::Established);
    Draft {
        subject: format!("The API secret of \"{label}\" was rotated"),
        paragraphs: vec![
            format!(
                "The API secret of \"{label}\" was rotated on {}, {by}. The old secret stopped working immediately.",
                moment(at)
            ),
            "If it was you, nothing is left to do.".to_owned(),
            format!("If it wasn't you, somebody else has access to your account. {then}"),
        ],
        links: Vec::from_iter(sign_in.map(|url| ("Sign in", url))),
    }
}

impl Draft {
    fn written(self) -> Words {
        let mut text = format!("Hello,\n\n{}\n", self.paragraphs.join("\n\n"));
        for (words, url) in &self.links {
            // Writing to a String can't fail, here and below.
            let _ = writeln!(text, "\n{words}: {url}");
        }
        Words {
            html: self.render().unwrap_or_default(),
            subject: self.subject,
            text,
        }
    }
}

/// A URL that a link may have.
fn web_link(url: Option<&str>) -> Option<String> {
    let url = Url::parse(url?).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.to_string())
}

fn moment(moment: DateTime<Utc>) -> String {
    moment.format("%-d %B %Y at %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests;
