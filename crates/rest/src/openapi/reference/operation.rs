//! An operation of the interface, or an event that the gateway posts.

use serde_json::Value;

use super::answer::{Answer, example};
use super::credential::{Credential, credentials};
use super::field::{Field, fields};
use super::list;
use super::request::Request;
use super::schema::Schemas;
use super::text::Text;

/// An operation.
#[derive(Debug)]
pub(super) struct Operation {
    /// Its anchor.
    pub(super) id: String,
    /// Its name in the list.
    pub(super) name: String,
    pub(super) method: String,
    /// Its path; `None`: an event, which goes to the reader's endpoint.
    pub(super) path: Option<String>,
    pub(super) summary: String,
    pub(super) text: Text,
    pub(super) credentials: Vec<Credential>,
    pub(super) inputs: Vec<Inputs>,
    pub(super) answers: Vec<Answer>,
    /// The command, or an event's body.
    pub(super) example: String,
    /// Where Swagger UI shows it.
    pub(super) try_at: String,
}

/// The parameters in one place, or the body's fields.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) title: &'static str,
    pub(super) fields: Vec<Field>,
}

impl Operation {
    pub(super) fn new(
        method: &str,
        path: &str,
        described: &Value,
        schemas: &Schemas,
        base_url: &str,
    ) -> Self {
        let common = Self::common(method, described, schemas);
        let required = |place: &str| {
            list(&described["parameters"])
                .filter(|parameter| parameter["in"] == place && parameter["required"] == true)
                .filter_map(|parameter| parameter["name"].as_str())
                .collect()
        };
        let request = Request {
            method,
            base_url,
            path,
            query: required("query"),
            headers: required("header"),
            credential: common.credentials.first(),
            body: &example(body(described)),
        };
        Self {
            example: request.curl(),
            path: Some(path.to_owned()),
            ..common
        }
    }

    /// An event.
    pub(super) fn event(described: &Value, schemas: &Schemas) -> Self {
        let common = Self::common("post", described, schemas);
        Self {
            name: common.id.clone(),
            example: example(body(described)),
            ..common
        }
    }

    fn common(method: &str, described: &Value, schemas: &Schemas) -> Self {
        let word = |name: &str| described[name].as_str().unwrap_or_default().to_owned();
        let id = word("operationId");
        let answers = described["responses"].as_object().into_iter().flatten();
        let tag = described["tags"][0].as_str().unwrap_or_default();
        Self {
            name: words(&id),
            method: method.to_uppercase(),
            path: None,
            summary: word("summary"),
            text: Text::of(&described["description"]),
            credentials: credentials(schemas, &described["security"]),
            inputs: inputs(described, schemas),
            answers: answers
                .map(|(status, answer)| Answer::new(schemas, status, answer))
                .collect(),
            example: String::new(),
            try_at: format!("/docs/try#/{tag}/{id}"),
            id,
        }
    }

    /// Responses that aren't errors.
    pub(super) fn successes(&self) -> impl Iterator<Item = &Answer> {
        self.answers.iter().filter(|answer| !answer.is_error())
    }

    pub(super) fn errors(&self) -> impl Iterator<Item = &Answer> {
        self.answers.iter().filter(|answer| answer.is_error())
    }
}

fn body(described: &Value) -> &Value {
    &described["requestBody"]["content"]["application/json"]
}

/// The parameters by place, and the body's fields.
fn inputs(described: &Value, schemas: &Schemas) -> Vec<Inputs> {
    let places = [
        ("path", "Path parameters"),
        ("query", "Query parameters"),
        ("header", "Headers"),
        ("cookie", "Cookies"),
    ];
    let parameters = places.map(|(place, title)| {
        let parameters = list(&described["parameters"]);
        let here = parameters.filter(|parameter| parameter["in"] == place);
        let fields = here.map(|parameter| {
            let name = parameter["name"].as_str().unwrap_or_default();
            Field::parameter(schemas, name, parameter)
        });
        Inputs {
            title,
            fields: fields.collect(),
        }
    });
    let body = Inputs {
        title: if described["requestBody"]["required"] == true {
            "Body"
        } else {
            "Body (optional)"
        },
        fields: fields(schemas, &body(described)["schema"]),
    };
    let all = parameters.into_iter().chain([body]);
    all.filter(|inputs| !inputs.fields.is_empty()).collect()
}

/// `List API secrets` for `list_api_secrets`.
fn words(id: &str) -> String {
    let words = id.split('_').enumerate().map(|(number, word)| match word {
        "api" => "API".to_owned(),
        word if number == 0 => match word.split_at_checked(1) {
            Some((first, rest)) => first.to_uppercase() + rest,
            None => String::new(),
        },
        word => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}
