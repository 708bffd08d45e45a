//! A figure: how fast one app sends while another one's key holds all the room that it gets.

use std::time::{Duration, Instant};

use mailgate_domain::accounts::CreatedApp;
use serde_json::json;
use tokio::task::JoinSet;

use super::raw::Raw;
use super::shares::{OTHER, another, authenticated, begin};
use crate::support::gateway::Gateway;
use crate::support::smtp_client::SmtpClient;

const RECIPIENT: &str = "bob@example.com";

/// Of each door.
const CLIENTS: usize = 8;

/// By turns without and with the stall.
const ROUNDS: usize = 5;

/// Measured for each door of a turn. Both together are shorter than a body may pause.
const STEP: Duration = Duration::from_secs(4);

/// What each client of the stalling key sends and doesn't end, in octets; all of it is more than its share.
const HALF: usize = 20_000_000;

/// What came of a turn: messages in a second by REST, and by SMTP.
type Rates = [f64; 2];

/// Half-sent bodies and DATA of the gateway's own app, as many as have room.
struct Stall {
    _rest: Vec<Raw>,
    _smtp: Vec<SmtpClient>,
}

impl Stall {
    async fn begin(gateway: &Gateway) -> Self {
        let part = format!("{:X}\r\n{}", 2 * HALF, "x".repeat(HALF));
        let content = format!("Subject: x\r\n\r\n{}", "x\r\n".repeat(HALF / 3));
        let (mut rest, mut smtp) = (Vec::new(), Vec::new());
        for _ in 0..CLIENTS {
            let mut client = begin(gateway, "Transfer-Encoding: chunked\r\n").await;
            // Whoever has no room any more is closed.
            drop(client.try_write(&part).await);
            rest.push(client);
            let mut client = SmtpClient::authenticated(gateway).await;
            client.begin_data(RECIPIENT).await;
            drop(client.try_write(content.as_bytes()).await);
            smtp.push(client);
        }
        let stall = Self {
            _rest: rest,
            _smtp: smtp,
        };
        gateway
            .eventually("a share that is used up", async |gateway| {
                is_used_up(gateway).await
            })
            .await;
        stall
    }
}

/// Whether the gateway's own app has no room for a large message.
async fn is_used_up(gateway: &Gateway) -> bool {
    let body = "x".repeat(HALF);
    let message = json!({ "to": RECIPIENT, "subject": "Large", "body": body });
    gateway.send(message).await.0 == 503
}

async fn turn(gateway: &Gateway, app: &CreatedApp) -> Rates {
    [by_rest(gateway, app).await, by_smtp(gateway, app).await]
}

async fn by_rest(gateway: &Gateway, app: &CreatedApp) -> f64 {
    let body = json!({ "pk": app.pushable_key.expose(), "to": RECIPIENT, "subject": "Hello",
                       "body": "It works.\n".repeat(500) });
    let url = format!("{}/send", gateway.daemon.base_url);
    let request = gateway
        .http
        .post(url)
        .header("x-send-key", app.send_key.expose());
    let request = request.json(&body);
    let mut clients = JoinSet::new();
    let began = Instant::now();
    for _ in 0..CLIENTS {
        let request = request.try_clone().unwrap();
        clients.spawn(async move {
            let mut sent = 0;
            while began.elapsed() < STEP {
                let response = request.try_clone().unwrap().send().await.unwrap();
                assert_eq!(response.status(), 200);
                response.bytes().await.unwrap();
                sent += 1;
            }
            sent
        });
    }
    rate(clients, began).await
}

async fn by_smtp(gateway: &Gateway, app: &CreatedApp) -> f64 {
    let body = "It works.\r\n".repeat(450);
    let message = format!("From: {OTHER}\r\nTo: {RECIPIENT}\r\nSubject: Hello\r\n\r\n{body}");
    let mut connected = Vec::new();
    for _ in 0..CLIENTS {
        connected.push(authenticated(gateway, app).await);
    }
    let mut clients = JoinSet::new();
    let began = Instant::now();
    for mut client in connected {
        let message = message.clone();
        clients.spawn(async move {
            let mut sent = 0;
            while began.elapsed() < STEP {
                let reply = client.submit(RECIPIENT, message.as_bytes()).await;
                assert!(reply.starts_with("250 2.0.0 "), "{reply}");
                sent += 1;
            }
            sent
        });
    }
    rate(clients, began).await
}

async fn rate(clients: JoinSet<u32>, began: Instant) -> f64 {
    let sent: u32 = clients.join_all().await.into_iter().sum();
    f64::from(sent) / began.elapsed().as_secs_f64()
}

fn median(turns: &[Rates], door: usize) -> f64 {
    let mut rates: Vec<f64> = turns.iter().map(|rates| rates[door]).collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures for a minute and a half; the tests of shares say that there is room for others"]
async fn others_keep_their_rate_while_one_key_stalls() {
    let gateway = Gateway::builder()
        .set("LIMITS__REQUESTS_PER_SECOND", 1_000_000)
        .set("LIMITS__REQUESTS_BURST", 1_000_000)
        .set("PLUGINS__PLUGIN_A__LIMITS__CONCURRENCY", 2 * CLIENTS)
        .start()
        .await;
    let app = another(&gateway).await;
    turn(&gateway, &app).await;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        alone.push(turn(&gateway, &app).await);
        let stall = Stall::begin(&gateway).await;
        beside.push(turn(&gateway, &app).await);
        assert!(is_used_up(&gateway).await, "the stall has ended");
        drop(stall);
        gateway
            .eventually("room again", async |gateway| !is_used_up(gateway).await)
            .await;
        gateway.sandbox.inbox.clear().await.unwrap();
        println!(
            "round {round}: alone {:.0?}, beside {:.0?}",
            alone[round], beside[round]
        );
    }
    for (door, name) in ["REST", "SMTP"].into_iter().enumerate() {
        let [alone, beside] = [&alone, &beside].map(|turns| median(turns, door));
        let part = beside / alone;
        println!(
            "{name}, {CLIENTS} clients: {alone:.0}/s alone, {beside:.0}/s while another key stalls ({part:.2})"
        );
        assert!(part > 0.5, "{name}: {part:.2} of the rate is left");
    }
    gateway.stop().await;
}
