//! The description's webhooks section: the events that the gateway posts to an app's endpoints.

use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{
    KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{
    ContentBuilder, OpenApi as Description, PathsBuilder, Ref, RefOr, Required, Response,
};
use utoipa::{PartialSchema, ToSchema};

use mailgate_types::bounce_type::BounceType;
use mailgate_types::event_name::EventName;

/// The type of a field of an event's data.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// A string, or null.
    TextOrNull,
    /// A status code of RFC 3463, or null.
    StatusCode,
    /// An ID with this prefix.
    Id(&'static str),
    Uuid,
    Moment,
    /// A whole number from 1 on.
    Count,
    /// Always true.
    True,
    /// The app's metadata; left out if there is none.
    Metadata,
    /// The schema of this name.
    Named(&'static str),
}

/// A field of an event's data: its name, type and meaning.
type Field = (&'static str, Kind, &'static str);

const LOG_ID: Field = ("log_id", Kind::Id("log"), "The message's log row.");
const FROM: Field = (
    "from_address",
    Kind::Text,
    "The sender: the mailbox's address, or one of its aliases.",
);
const TO: Field = (
    "to_address",
    Kind::Text,
    "The recipient; if the To header names several, all of them, separated by commas; without a To header, the \
     envelope's first recipient.",
);
const SUBJECT: Field = ("subject", Kind::Text, "Its subject.");
const PLUGIN: Field = ("plugin", Kind::Named("Plugin"), "The mailbox's plugin.");
const ERROR: Field = ("error", Kind::Text, "The error, for people.");
const METADATA: Field = (
    "metadata",
    Kind::Metadata,
    "The metadata attached to the message; left out if there is none.",
);
const CREDENTIAL_ID: Field = ("credential_id", Kind::Id("cred"), "The mailbox.");
const EMAIL: Field = ("email", Kind::Text, "The mailbox's address.");
const APP_ID: Field = ("app_id", Kind::Uuid, "The app's UUID.");
const NAME: Field = ("name", Kind::Text, "The app's display name.");

const BOUNCED: &[Field] = &[
    LOG_ID,
    (
        "message_id",
        Kind::TextOrNull,
        "Its Message-ID; null if the provider doesn't report one.",
    ),
    FROM,
    (
        "to_address",
        Kind::Text,
        "The recipient, as the notification names it: after forwarding, it may be one that you didn't send to.",
    ),
    SUBJECT,
    PLUGIN,
    (
        "bounce_type",
        Kind::Named("BounceType"),
        "Whether it is final.",
    ),
    (
        "status",
        Kind::StatusCode,
        "The status code of RFC 3463, like `5.1.1`; null if the notification has none.",
    ),
    (
        "diagnostic",
        Kind::TextOrNull,
        "The server's text; null if the notification has none.",
    ),
    (
        "bounced_at",
        Kind::Moment,
        "When the gateway read the notification.",
    ),
    METADATA,
];

const MESSAGE_ID: Field = (
    "message_id",
    Kind::TextOrNull,
    "Its Message-ID; null if the provider doesn't report one.",
);

const REASON: Field = (
    "reason",
    Kind::Named("DisconnectReason"),
    "Why the mailbox is no longer connected.",
);

/// When an event is sent, and the fields of its data.
fn event(name: EventName) -> (&'static str, &'static [Field]) {
    match name {
        EventName::EmailSent => (
            "A message was sent.",
            &[LOG_ID, FROM, TO, SUBJECT, PLUGIN, METADATA, MESSAGE_ID],
        ),
        EventName::EmailFailedTemp => (
            "An attempt to send a message failed; another one follows.",
            &[
                LOG_ID,
                FROM,
                TO,
                SUBJECT,
                PLUGIN,
                METADATA,
                ERROR,
                (
                    "retry_count",
                    Kind::Count,
                    "Attempts that have failed so far.",
                ),
                (
                    "next_retry_at",
                    Kind::Moment,
                    "When the next attempt is due.",
                ),
            ],
        ),
        EventName::EmailFailedPerm => (
            "A message failed permanently; the gateway won't try again.",
            &[
                LOG_ID,
                FROM,
                TO,
                SUBJECT,
                PLUGIN,
                METADATA,
                ERROR,
                ("final", Kind::True, "Always true: no attempt follows."),
            ],
        ),
        EventName::EmailBounced => (
            "A message that was sent didn't reach a recipient, or is delayed on the way: one event for each recipient \
             and notification.",
            BOUNCED,
        ),
        EventName::EmailReply => (
            "A message that was sent got a reply.",
            &[
                (
                    "message_id",
                    Kind::Text,
                    "The Message-ID of the message that it replies to.",
                ),
                ("from_address", Kind::Text, "Who replied."),
                (
                    "to_address",
                    Kind::Text,
                    "The mailbox that received the reply.",
                ),
                ("subject", Kind::Text, "The reply's subject."),
                METADATA,
            ],
        ),
        EventName::UserConnected => ("A mailbox was connected.", &[CREDENTIAL_ID, EMAIL, PLUGIN]),
        EventName::UserDisconnected => (
            "A mailbox is no longer connected.",
            &[CREDENTIAL_ID, EMAIL, PLUGIN, REASON],
        ),
        EventName::MailboxDegraded => (
            "The provider refuses to let the mailbox be read: replies and bounces aren't found until it does again. \
             Sending goes on.",
            &[CREDENTIAL_ID, EMAIL, PLUGIN, ERROR],
        ),
        EventName::MailboxRecovered => (
            "The provider lets the mailbox be read again.",
            &[CREDENTIAL_ID, EMAIL, PLUGIN],
        ),
        EventName::AppCreated => (
            "The app was created. Sent only to the `webhook_url` given at creation.",
            &[APP_ID, NAME],
        ),
        EventName::AppDeleted => (
            "The app was deleted. This is the last event that its endpoints receive.",
            &[APP_ID, NAME],
        ),
        EventName::SendKeyRenewed => (
            "The app has a new send key; the old one no longer works.",
            &[APP_ID],
        ),
    }
}

/// Adds the section, and a schema for each event's body.
pub(crate) fn add_webhook_events(document: &mut Description) {
    let mut section = PathsBuilder::new();
    let schemas = &mut document.components.get_or_insert_default().schemas;
    schemas.insert(EventName::name().into_owned(), EventName::schema());
    schemas.insert(BounceType::name().into_owned(), BounceType::schema());
    for name in EventName::ALL {
        let (summary, fields) = event(name);
        let schema = schema_name(name);
        section = section.path(name.as_str(), webhook(name, summary, &schema));
        schemas.insert(schema, envelope(name, fields));
    }
    document.webhooks = Some(section.build());
}

/// `EmailSentEvent` for `email.sent`.
fn schema_name(name: EventName) -> String {
    let words = name.as_str().split(['.', '_']).chain(["event"]);
    let capitalized = words.filter_map(|word| word.split_at_checked(1));
    capitalized
        .map(|(first, rest)| first.to_uppercase() + rest)
        .collect()
}

fn webhook(name: EventName, summary: &str, schema: &str) -> PathItem {
    let body = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema)));
    let body = RequestBodyBuilder::new()
        .content("application/json", body.build())
        .required(Some(Required::True))
        .build();
    let operation = OperationBuilder::new()
        .operation_id(Some(name.as_str()))
        .summary(Some(summary.trim_end_matches('.')))
        .tag("Events")
        .securities(Some([SecurityRequirement::default()]))
        .parameters(Some(headers()))
        .request_body(Some(body))
        .response(
            "2XX",
            Response::new(
                "You have received the event. Any other answer except 410, or none within 15 seconds, is retried.",
            ),
        );
    PathItem::new(HttpMethod::Post, operation)
}

/// The headers that sign a webhook: <https://www.standardwebhooks.com>, version 1.
fn headers() -> [Parameter; 3] {
    [
        (
            "webhook-id",
            text(Some("^msg_[0-9a-z]{26}$")),
            "The event's ID: the same for every attempt, so that you can detect duplicates.",
        ),
        (
            "webhook-timestamp",
            text(Some("^[0-9]+$")),
            "When the attempt was made, in seconds since 1970. Refuse requests older than 5 minutes.",
        ),
        (
            "webhook-signature",
            text(Some("^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)?$")),
            "`v1,` and base64 of the HMAC-SHA256 of id, timestamp and body, joined by dots, under the \
             endpoint's secret. For 24 hours after that was replaced, a second one under the old secret follows, \
             behind a space.",
        ),
    ]
    .map(|(name, schema, description)| {
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Header)
            .required(Required::True)
            .description(Some(description))
            .schema(Some(schema))
            .build()
    })
}

/// The body: the envelope with the event's data.
fn envelope(name: EventName, fields: &[Field]) -> RefOr<Schema> {
    let data = fields.iter().fold(
        ObjectBuilder::new().description(Some("What happened.")),
        |data, (field, kind, description)| {
            let data = data.property(*field, kind.property(description));
            match kind {
                Kind::Metadata => data,
                _ => data.required(*field),
            }
        },
    );
    let mut event = text(None);
    event.enum_values = Some(vec![name.as_str().into()]);
    ObjectBuilder::new()
        .property("event", described(event, "Its name."))
        .property("app_id", Kind::Uuid.property("The app's UUID."))
        .property(
            "timestamp",
            Kind::Moment.property("When it happened: ISO 8601, UTC."),
        )
        .property("data", data)
        .required("event")
        .required("app_id")
        .required("timestamp")
        .required("data")
        .into()
}

fn described(mut schema: Object, description: &str) -> Schema {
    schema.description = Some(description.to_owned());
    Schema::Object(schema)
}

fn text(pattern: Option<&str>) -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(pattern)
        .build()
}

impl Kind {
    fn property(self, description: &str) -> RefOr<Schema> {
        let schema = match self {
            Self::Named(name) => {
                let mut reference = Ref::from_schema_name(name);
                description.clone_into(&mut reference.description);
                return RefOr::Ref(reference);
            }
            Self::Text => text(None),
            Self::TextOrNull => ObjectBuilder::new()
                .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
                .build(),
            Self::StatusCode => ObjectBuilder::new()
                .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
                .examples([serde_json::json!("5.1.1")])
                .build(),
            Self::Id(prefix) => text(Some(&format!("^{prefix}_[0-7][0-9a-z]{{25}}$"))),
            Self::Uuid => {
                let mut schema = text(None);
                schema.format = Some(SchemaFormat::Custom("uuid".to_owned()));
                schema
            }
            Self::Moment => {
                let mut schema = text(None);
                schema.format = Some(SchemaFormat::KnownFormat(KnownFormat::DateTime));
                schema
            }
            Self::Count => ObjectBuilder::new()
                .schema_type(Type::Integer)
                .minimum(Some(1.0))
                .build(),
            Self::Metadata => ObjectBuilder::new()
                .additional_properties(Some(Schema::Object(text(None))))
                .build(),
            Self::True => ObjectBuilder::new()
                .schema_type(Type::Boolean)
                .enum_values(Some([true]))
                .build(),
        };
        RefOr::T(described(schema, description))
    }
}
