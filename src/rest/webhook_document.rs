//! The description's section on webhooks: what the gateway posts to an app's endpoints, event by event.

use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{
    KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{
    ContentBuilder, OpenApi as Description, PathsBuilder, RefOr, Required, Response,
};
use utoipa::{PartialSchema, ToSchema};

use crate::types::event_name::EventName;

/// What a field of an event's data holds.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// A text, or null.
    TextOrNull,
    /// An id with this prefix.
    Id(&'static str),
    Uuid,
    Moment,
    /// A whole number from 1 on.
    Count,
    /// Always true.
    True,
    /// One of these texts.
    OneOf(&'static [&'static str]),
}

/// A field of an event's data: its name, what it holds, what it means.
type Field = (&'static str, Kind, &'static str);

const LOG_ID: Field = ("log_id", Kind::Id("log"), "The message's log row.");
const FROM: Field = (
    "from_address",
    Kind::Text,
    "The mailbox that it is sent from.",
);
const TO: Field = ("to_address", Kind::Text, "Whom it goes to.");
const SUBJECT: Field = ("subject", Kind::Text, "Its subject.");
const PLUGIN: Field = (
    "plugin",
    Kind::OneOf(&["plugin_a", "plugin_b"]),
    "The mailbox's plugin.",
);
const ERROR: Field = ("error", Kind::Text, "What went wrong, for people.");
const CREDENTIAL_ID: Field = ("credential_id", Kind::Id("cred"), "The mailbox.");
const EMAIL: Field = ("email", Kind::Text, "The mailbox's address.");
const APP_ID: Field = ("app_id", Kind::Uuid, "The app's UUID.");
const NAME: Field = ("name", Kind::Text, "As you call it.");

/// When an event is told, and the fields of its data.
fn event(name: EventName) -> (&'static str, &'static [Field]) {
    match name {
        EventName::EmailSent => (
            "A message was sent.",
            &[
                LOG_ID,
                FROM,
                TO,
                SUBJECT,
                PLUGIN,
                (
                    "message_id",
                    Kind::TextOrNull,
                    "Its Message-ID; null where the provider tells none.",
                ),
            ],
        ),
        EventName::EmailFailedTemp => (
            "An attempt to send a message failed; another one follows.",
            &[
                LOG_ID,
                FROM,
                TO,
                SUBJECT,
                PLUGIN,
                ERROR,
                (
                    "retry_count",
                    Kind::Count,
                    "Attempts that have failed so far.",
                ),
                ("next_retry_at", Kind::Moment, "When the next one is due."),
            ],
        ),
        EventName::EmailFailedPerm => (
            "A message will not be sent.",
            &[
                LOG_ID,
                FROM,
                TO,
                SUBJECT,
                PLUGIN,
                ERROR,
                ("final", Kind::True, "Always true: no attempt follows."),
            ],
        ),
        EventName::EmailReply => (
            "A message that was sent got a reply.",
            &[
                (
                    "message_id",
                    Kind::Text,
                    "The Message-ID of the message that is answered.",
                ),
                ("from_address", Kind::Text, "Who replied."),
                ("to_address", Kind::Text, "The mailbox that got the reply."),
                ("subject", Kind::Text, "The reply's subject."),
            ],
        ),
        EventName::UserConnected => ("A mailbox was connected.", &[CREDENTIAL_ID, EMAIL, PLUGIN]),
        EventName::UserDisconnected => (
            "A mailbox is no longer connected.",
            &[
                CREDENTIAL_ID,
                EMAIL,
                PLUGIN,
                (
                    "reason",
                    Kind::OneOf(&[
                        "invalid_grant",
                        "interaction_required",
                        "consent_required",
                        "login_required",
                        "replaced",
                        "removed",
                    ]),
                    "`invalid_grant`: its grant has ended; `interaction_required`, `consent_required`, \
                     `login_required`: its user has to do something at the provider, to agree or to sign in \
                     again, by connecting it once more; `replaced`: its user connected another one \
                     instead; `removed`: you disconnected it.",
                ),
            ],
        ),
        EventName::AppCreated => (
            "The app was created; only a `webhook_url` that it was created with is told.",
            &[APP_ID, NAME],
        ),
        EventName::AppDeleted => (
            "The app was deleted; the last that its endpoints are told.",
            &[APP_ID, NAME],
        ),
        EventName::SendKeyRenewed => (
            "The app has a new send key; the old one is worthless.",
            &[APP_ID],
        ),
    }
}

/// Adds the section.
pub(super) fn say_what_is_told(document: &mut Description) {
    let section = EventName::ALL
        .into_iter()
        .fold(PathsBuilder::new(), |section, name| {
            section.path(name.as_str(), webhook(name))
        });
    document.webhooks = Some(section.build());
    let schemas = &mut document.components.get_or_insert_default().schemas;
    schemas.insert(EventName::name().into_owned(), EventName::schema());
}

fn webhook(name: EventName) -> PathItem {
    let (summary, fields) = event(name);
    let body = ContentBuilder::new().schema(Some(envelope(name, fields)));
    let body = RequestBodyBuilder::new()
        .content("application/json", body.build())
        .required(Some(Required::True))
        .build();
    let operation = OperationBuilder::new()
        .operation_id(Some(name.as_str()))
        .summary(Some(summary))
        .tag("Webhooks")
        .parameters(Some(headers()))
        .request_body(Some(body))
        .response(
            "2XX",
            Response::new("You have it. Any other answer but 410, or none within 15 seconds, and it comes again."),
        );
    PathItem::new(HttpMethod::Post, operation)
}

/// What signs a webhook: <https://www.standardwebhooks.com>, version 1.
fn headers() -> [Parameter; 3] {
    [
        (
            "webhook-id",
            text(Some("^msg_[0-9a-z]{26}$")),
            "The message's id: the same over all attempts, so that you notice what comes twice.",
        ),
        (
            "webhook-timestamp",
            text(Some("^[0-9]+$")),
            "When the attempt was made, in seconds since 1970. Refuse what is older than 5 minutes.",
        ),
        (
            "webhook-signature",
            text(Some("^v1,[A-Za-z0-9+/]{43}=$")),
            "`v1,` and base64 of the HMAC-SHA256 of id, timestamp and body, joined by dots, under the \
             endpoint's secret.",
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

/// The body: the envelope with the event's data in it.
fn envelope(name: EventName, fields: &[Field]) -> RefOr<Schema> {
    let data = fields.iter().fold(
        ObjectBuilder::new().description(Some("What happened.")),
        |data, (field, kind, description)| {
            let schema = described(kind.schema(), description);
            data.property(*field, schema).required(*field)
        },
    );
    let mut event = text(None);
    event.enum_values = Some(vec![name.as_str().into()]);
    ObjectBuilder::new()
        .property("event", described(event, "Its name."))
        .property("app_id", described(Kind::Uuid.schema(), "The app's UUID."))
        .property(
            "timestamp",
            described(Kind::Moment.schema(), "When it happened: ISO 8601, UTC."),
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
    fn schema(self) -> Object {
        match self {
            Self::Text => text(None),
            Self::TextOrNull => ObjectBuilder::new()
                .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
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
            Self::True => ObjectBuilder::new()
                .schema_type(Type::Boolean)
                .enum_values(Some([true]))
                .build(),
            Self::OneOf(texts) => ObjectBuilder::new()
                .schema_type(Type::String)
                .enum_values(Some(texts.iter().copied()))
                .build(),
        }
    }
}
