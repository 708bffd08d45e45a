//! `POST /send` over HTTP/1.1 connections that are kept.

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use super::message::{self, RECIPIENT};
use super::{Client, Outcome, RestServer};

pub(super) struct RestClient {
    sender: SendRequest<Full<Bytes>>,
    send_key: String,
    body: Bytes,
    _connection: AbortOnDropHandle<hyper::Result<()>>,
}

impl Client for RestClient {
    async fn send(&mut self) -> Outcome<()> {
        let request = Request::post("/send")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("x-send-key", &self.send_key)
            .body(Full::new(self.body.clone()))?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if status == StatusCode::OK {
            Ok(())
        } else {
            Err(format!("{status}: {}", String::from_utf8_lossy(&body)).into())
        }
    }
}

pub(super) async fn clients(server: &RestServer, clients: usize) -> Outcome<Vec<RestClient>> {
    let body = json!({
        "pk": server.pushable_key,
        "to": RECIPIENT,
        "subject": "How fast is it?",
        "body": message::text(),
    });
    let body = Bytes::from(serde_json::to_vec(&body)?);
    let mut connected = Vec::new();
    for _ in 0..clients {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        connected.push(RestClient {
            sender,
            send_key: server.send_key.clone(),
            body: body.clone(),
            _connection: AbortOnDropHandle::new(tokio::spawn(connection)),
        });
    }
    Ok(connected)
}
