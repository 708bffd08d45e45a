//! What stands in the log of a real process: a request that failed, an outage of the database, a webhook that is
//! given up.

use serde_json::{Value, json};

use crate::command_line::process::{Invocation, Running, http_client};
use crate::command_line::serve::replica;
use crate::crash::database::DurablePostgres;
use crate::support::caller::Caller;
use crate::support::gateway::Gateway;
use crate::support::patience;
use crate::support::receiver::{Receiver, Reply};

pub(super) fn lines(serve: &Running) -> Vec<Value> {
    let text = serve.stderr();
    let lines = text.lines().filter_map(|it| serde_json::from_str(it).ok());
    lines.collect()
}

/// The lines of one request.
fn of_request(serve: &Running, request_id: &str) -> Vec<Value> {
    let mut lines = lines(serve);
    lines.retain(|line| {
        let spans = line["spans"].as_array().into_iter().flatten();
        spans.clone().count() == 1 && spans.clone().all(|span| span["request_id"] == request_id)
    });
    lines
}

/// `POST /send`: the status and the request's id.
pub(super) async fn send(
    gateway: &Gateway,
    http: std::net::SocketAddr,
    key: &str,
    to: &str,
) -> (u16, String) {
    let body = json!({
        "pk": gateway.app.pushable_key.expose(), "to": to, "subject": "Hello", "body": "It works.",
    });
    let request = http_client().post(format!("http://{http}/send"));
    let answer = request.header("x-send-key", key).json(&body).send().await;
    let answer = answer.unwrap();
    let id = answer.headers()["x-request-id"].to_str().unwrap();
    (answer.status().as_u16(), id.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_of_a_request_has_its_id_and_a_failed_one_has_one_line() {
    let gateway = Gateway::start().await;
    let mut serve = replica(&gateway).start();
    let http = serve.ready().await.http;
    let key = gateway.app.send_key.expose();
    let wrong_key = format!("sek_{}", "a".repeat(43));
    let (status, sent) = send(&gateway, http, key, "bob@example.com").await;
    assert_eq!(status, 200);
    let (status, refused) = send(&gateway, http, key, "nobody").await;
    assert_eq!(status, 422);
    let (status, strange) = send(&gateway, http, &wrong_key, "bob@example.com").await;
    assert_eq!(status, 401);
    serve.terminate().await;

    let of_sent = of_request(&serve, &sent);
    let messages: Vec<&Value> = of_sent.iter().map(|line| &line["message"]).collect();
    assert!(messages.contains(&&json!("message")), "{}", serve.stderr());
    let of_refused = of_request(&serve, &refused);
    let [line] = of_refused.as_slice() else {
        panic!("{}", serve.stderr());
    };
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["message"], "a request was refused");
    assert_eq!(
        (&line["status"], &line["method"]),
        (&json!(422), &json!("POST"))
    );
    assert_eq!(line["route"], "/send");
    assert_eq!(line["code"], "invalid_request");
    assert_eq!(line["fields"], "to");
    assert_eq!(
        of_request(&serve, &strange),
        [] as [Value; 0],
        "strangers fill no log"
    );
    gateway.stop().await;
}

/// Loops that each would say for themselves that the database is away.
const SILENT: [&str; 4] = [
    "due notices can't be sent",
    "due messages can't be read",
    "due webhooks can't be read",
    "can't listen for deleted apps; trying again",
];

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_told_once_with_its_cause_and_once_when_it_is_over() {
    let mut server = DurablePostgres::start().await;
    let url = server.create_database().await;
    let gateway = Gateway::builder().database(&url).start().await;
    let mut serve = replica(&gateway)
        .set(
            "LOG__FILTER",
            "info,mailgate=debug,sqlx::postgres::notice=warn,sqlx_core::pool=error",
        )
        .start();
    let http = serve.ready().await.http;
    let known = lines(&serve).len();
    server.kill().await;
    let key = gateway.app.send_key.expose();
    let (status, request) = send(&gateway, http, key, "bob@example.com").await;
    assert_eq!(status, 503);
    let gone = "the database can't be used; nothing more is logged about it until it is back";
    let line = serve.logged(gone).await;
    assert_eq!(line["level"], "ERROR");
    let cause = line["cause"].as_str().unwrap();
    assert!(
        !cause.contains("pool timed out"),
        "not what the pool says: {cause}"
    );
    assert!(
        cause.contains("No such file") || cause.contains("refused"),
        "{cause}"
    );
    // The probe answers from the last look, and nobody waits longer for it than for the answer.
    let check = Invocation::new(["healthcheck"]).set("HTTP__LISTEN", http.to_string());
    check
        .finish()
        .await
        .fails(1, &["is not ready: GET /readyz answers 503"]);
    for message in SILENT {
        assert_eq!(serve.logged(message).await["level"], "DEBUG");
    }
    let of_request = of_request(&serve, &request);
    let [line] = of_request.as_slice() else {
        panic!("{}", serve.stderr());
    };
    assert_eq!(
        (&line["level"], &line["status"]),
        (&json!("WARN"), &json!(503))
    );
    assert_eq!(line["message"], "a request failed");
    assert_eq!(line["code"], "unavailable");
    assert!(line["cause"].is_string(), "{line}");
    server.restart().await;
    let back = serve.logged("the database is back").await;
    assert!(back["seconds"].is_u64(), "{back}");
    patience::until("a send that works again", async || {
        send(&gateway, http, key, "bob@example.com").await.0 == 200
    })
    .await;
    serve.terminate().await;
    let mut loud = lines(&serve).split_off(known);
    loud.retain(|line| line["level"] == "ERROR");
    assert_eq!(loud.len(), 1, "{loud:#?}");
    let mut warned = lines(&serve).split_off(known);
    warned.retain(|line| line["level"] == "WARN" && line["message"] != "a request failed");
    // What it finds when it is back is no outage's.
    warned.retain(|line| line["error"].is_string());
    assert_eq!(warned, [] as [Value; 0]);
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_given_up_and_one_that_is_switched_off_leave_a_line() {
    let gateway = Gateway::start().await;
    let owner = Caller::owner(&gateway).await.secret;
    let app = gateway.app.pushable_key.expose();
    gateway.stop_daemon().await;
    let mut serve = replica(&gateway)
        .set("WEBHOOKS__ALLOW_PRIVATE", "true")
        .start();
    let http = serve.ready().await.http;
    let receiver = Receiver::start().await;
    receiver.always(Reply::Status(410, "gone"));
    let ask = async |method: &str, path: &str, body: Value| -> Value {
        let url = format!("http://{http}/apps/{app}/{path}");
        let request = http_client().request(method.parse().unwrap(), url);
        let answer = request.header("x-api-secret", &owner).json(&body).send();
        let answer = answer.await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.status());
        answer.json().await.unwrap()
    };
    let url = receiver.url("/?token=hunter2");
    let events = json!(["send_key.renewed"]);
    let made = ask("POST", "webhooks", json!({ "url": url, "events": events })).await;
    ask("POST", "reset-send-key", json!({})).await;
    let line = serve.logged("a webhook is given up").await;
    assert_eq!(line["level"], "WARN");
    assert_eq!(line["webhook_id"], made["id"]);
    assert_eq!(line["app_id"], gateway.app.id.to_string());
    assert_eq!(line["http_status"], 410);
    assert_eq!(line["attempts"], 1);
    let webhook = format!("webhooks/{}", made["id"].as_str().unwrap());
    ask("PUT", &webhook, json!({ "is_active": false })).await;
    let line = serve
        .logged("a webhook configuration is switched off")
        .await;
    assert_eq!(line["webhook_id"], made["id"]);
    serve.terminate().await;
    assert!(!serve.stderr().contains("hunter2"), "{}", serve.stderr());
    gateway.stop().await;
}
