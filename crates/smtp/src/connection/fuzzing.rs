//! The fuzz target of a connection: messages of up to a mebibyte through every buffer, by DATA and by BDAT, in any
//! chunks and packets, in lock-step and pipelined. An accepted message equals the sent one, octet for octet, except for
//! normalized bare line feeds.

#![expect(
    clippy::missing_panics_doc,
    reason = "targets panic if an invariant is violated"
)]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use rustls::ServerConfig;
use rustls::server::ResolvesServerCertUsingSni;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{Backend, ConnectionSettings, Delivered, Driver, End};
use crate::protocol::authentication::Credentials;
use crate::protocol::data::BareNewline;
use crate::protocol::reply::Reply;
use crate::protocol::session::{Encryption, Envelope, Mechanism, Session, SessionSettings};
use mailgate_types::email_address::EmailAddress;
use mailgate_types::fuzzing::{Input, with_line_ends};
use mailgate_types::trusted_peers::TrustedPeers;

/// Size limit of messages in octets, and the size of the longest one sent.
const LIMIT: usize = 896 * 1024;
const LONGEST: usize = 1024 * 1024;

/// Largest packet, in octets.
const PACKET: usize = 96 * 1024;

/// How a client sends a message.
struct Plan {
    /// By BDAT rather than DATA.
    chunked: bool,
    /// Waits for each reply.
    lock_step: bool,
    chunk_lengths: Vec<usize>,
    packet_lengths: Vec<usize>,
    /// The content sent, before dot-stuffing.
    sent: Vec<u8>,
    /// The content expected to arrive.
    content: Vec<u8>,
}

/// Several messages on one connection.
pub fn smtp_connection(data: &[u8]) {
    let mut input = Input::new(data);
    let options = input.byte();
    let bare_newline = if options & 2 == 2 {
        BareNewline::Normalize
    } else {
        BareNewline::Refuse
    };
    let plans: Vec<Plan> = (0..=options % 2)
        .map(|_| plan(&mut input, bare_newline))
        .collect();
    let backend = Recorder::default();
    RUNTIME.with(|runtime| {
        let replies = runtime.block_on(dialogue(&plans, &backend, bare_newline));
        let delivered =
            std::mem::take(&mut *backend.0.lock().unwrap_or_else(PoisonError::into_inner));
        let expected: Vec<&Vec<u8>> = plans
            .iter()
            .map(|plan| &plan.content)
            .filter(|content| content.len() <= LIMIT)
            .collect();
        let taken = replies.matches("Recorded\r\n").count();
        assert_eq!(taken, expected.len(), "{replies}");
        assert_eq!(delivered.len(), expected.len());
        for (delivered, expected) in delivered.iter().zip(expected) {
            assert_eq!(delivered.len(), expected.len(), "octets are missing");
            assert!(delivered == expected, "the octets are others");
        }
    });
}

fn plan(input: &mut Input<'_>, bare_newline: BareNewline) -> Plan {
    let options = input.byte();
    // Buffers end at powers of two.
    let length = |input: &mut Input<'_>| {
        let (exponent, more) = (input.byte() % 21, input.number());
        (1_usize << exponent)
            .saturating_add(more)
            .saturating_sub(1 << 15)
            .max(1)
    };
    let chunk_lengths = (0..input.byte() % 6).map(|_| length(input)).collect();
    let packet_lengths = (0..input.byte() % 6)
        .map(|_| length(input).min(PACKET))
        .collect();
    let whole = length(input).min(LONGEST);
    let begin = input.byte();
    let mut content = with_line_ends(input.take(begin.into()));
    // Numbered lines, so that all differ.
    let mut number = 0_u32;
    while content.len() < whole {
        if content.ends_with(b"\r\n") && options & 4 == 4 {
            content.push(b'.');
        }
        for byte in number.to_be_bytes() {
            content.extend_from_slice(&[b'a' + (byte >> 4), b'a' + (byte & 15)]);
        }
        if number % 8 == u32::from(options >> 3) % 8 {
            content.extend_from_slice(b"\r\n");
        }
        number += 1;
    }
    if !content.ends_with(b"\r\n") {
        content.extend_from_slice(b"\r\n");
    }
    let chunked = options & 1 == 1;
    let sent = if bare_newline == BareNewline::Normalize && options & 64 == 64 {
        // Every line end, or every second one. The dot that ends DATA must follow CRLF.
        let step = if options & 128 == 128 { 2 } else { 1 };
        with_bare_newlines(&content, step, usize::from(!chunked))
    } else {
        content.clone()
    };
    Plan {
        chunked,
        lock_step: options & 2 == 2,
        chunk_lengths,
        packet_lengths,
        sent,
        content,
    }
}

/// Every `step`th line end without its CR, except for the last `kept`.
fn with_bare_newlines(content: &[u8], step: usize, kept: usize) -> Vec<u8> {
    let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
    let mut bare = Vec::with_capacity(content.len());
    for (number, line) in lines.iter().enumerate() {
        match line.strip_suffix(b"\r\n") {
            Some(line) if number % step == 0 && number + kept < lines.len() => {
                bare.extend_from_slice(line);
                bare.push(b'\n');
            }
            _ => bare.extend_from_slice(line),
        }
    }
    bare
}

async fn dialogue(plans: &[Plan], backend: &Recorder, bare_newline: BareNewline) -> String {
    let (mut client, server) = tokio::io::duplex(PACKET);
    let settings = settings(bare_newline);
    let session = Session::new(Arc::clone(&settings.session), Encryption::Tls);
    let stop = CancellationToken::new();
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let serve = async {
        let mut driver = Driver::new(server, session, peer, &settings, backend, &stop);
        let end = driver.run().await;
        assert!(matches!(end, End::Closed), "the connection broke");
    };
    let talk = async {
        let mut replies = String::new();
        let credentials = STANDARD.encode("\0app\0good");
        say(
            &mut client,
            &format!("EHLO c\r\nAUTH PLAIN {credentials}\r\n"),
            &mut replies,
        )
        .await;
        for plan in plans {
            send(&mut client, plan, &mut replies).await;
        }
        exchange(&mut client, b"QUIT\r\n", &[], true, &mut replies).await;
        replies
    };
    tokio::join!(talk, serve).0
}

async fn send(client: &mut DuplexStream, plan: &Plan, replies: &mut String) {
    say(
        client,
        "RSET\r\nMAIL FROM:<a@x.org>\r\nRCPT TO:<b@x.org>\r\n",
        replies,
    )
    .await;
    let mut steps: Vec<Vec<u8>> = Vec::new();
    if plan.chunked {
        let mut rest = plan.sent.as_slice();
        let mut lengths = plan.chunk_lengths.iter().cycle();
        loop {
            let length = lengths.next().map_or(rest.len(), |length| *length);
            // A thousand chunks test as much as ten thousand.
            let length = length.max(plan.sent.len() / 1_000).min(rest.len());
            let (chunk, behind) = rest.split_at(length);
            rest = behind;
            let last = if rest.is_empty() { " LAST" } else { "" };
            steps.push([format!("BDAT {length}{last}\r\n").as_bytes(), chunk].concat());
            if rest.is_empty() {
                break;
            }
        }
    } else {
        steps.push(b"DATA\r\n".to_vec());
        let mut stuffed = Vec::with_capacity(plan.sent.len() + 5);
        for line in plan.sent.split_inclusive(|byte| *byte == b'\n') {
            if line.starts_with(b".") {
                stuffed.push(b'.');
            }
            stuffed.extend_from_slice(line);
        }
        stuffed.extend_from_slice(b".\r\n");
        steps.push(stuffed);
    }
    if plan.lock_step {
        for step in steps {
            exchange(client, &step, &plan.packet_lengths, false, replies).await;
        }
    } else {
        // NOOP's reply is the last one.
        steps.push(b"NOOP\r\n".to_vec());
        exchange(
            client,
            &steps.concat(),
            &plan.packet_lengths,
            false,
            replies,
        )
        .await;
    }
}

/// Sends commands in one packet.
async fn say(client: &mut DuplexStream, commands: &str, replies: &mut String) {
    exchange(client, commands.as_bytes(), &[], false, replies).await;
}

/// Writes in packets while reading replies. All replies have arrived when the server waits for more.
async fn exchange(
    client: &mut DuplexStream,
    bytes: &[u8],
    packets: &[usize],
    to_the_end: bool,
    replies: &mut String,
) {
    let (mut reader, mut writer) = tokio::io::split(client);
    let write = async {
        let mut rest = bytes;
        let mut lengths = packets.iter().cycle();
        while !rest.is_empty() {
            let length = lengths.next().map_or(PACKET, |length| *length);
            let length = length.max(bytes.len() / 1_000).min(rest.len());
            let (packet, behind) = rest.split_at(length);
            rest = behind;
            // A server that has closed the connection has given the reason.
            if writer.write_all(packet).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let mut received = Vec::new();
    let read = async {
        loop {
            let mut buffer = [0; 4096];
            match reader.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(length) => received.extend_from_slice(&buffer[..length]),
            }
        }
    };
    let settle = async {
        write.await;
        if to_the_end {
            std::future::pending::<()>().await;
        }
        // The server runs until it has read and answered everything; then it is this task's turn again.
        for _ in 0..64 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = read => {}
        () = settle => {}
    }
    replies.push_str(&String::from_utf8_lossy(&received));
}

thread_local! {
    static RUNTIME: Runtime = runtime();
}

fn runtime() -> Runtime {
    let Ok(runtime) = Builder::new_current_thread().enable_time().build() else {
        unreachable!("a runtime can be made");
    };
    runtime
}

fn settings(bare_newline: BareNewline) -> ConnectionSettings {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let Ok(builder) =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
    else {
        unreachable!("TLS can be set up");
    };
    // Nothing is encrypted here.
    let tls = builder
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
    ConnectionSettings {
        session: Arc::new(SessionSettings {
            hostname: "gate.example".to_owned(),
            maximum_line: 2_048,
            maximum_message: LIMIT,
            maximum_recipients: 3,
            maximum_errors: usize::MAX,
            maximum_authentication_failures: 3,
            mechanisms: vec![Mechanism::Plain],
            starttls: true,
            ask_for_recipients: false,
            bare_newline,
        }),
        tls: TlsAcceptor::from(Arc::new(tls)),
        implicit_tls: true,
        listener: "fuzz",
        balancers: TrustedPeers::default(),
        command: Duration::from_mins(1),
        content_idle: Duration::from_mins(1),
        minimum_rate: 1,
    }
}

/// Keeps delivered messages.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Vec<u8>>>>);

impl Backend for Recorder {
    type Identity = ();
    type Incoming = Vec<u8>;

    async fn authenticate(&self, _: Credentials, _: IpAddr) -> Result<(), Reply> {
        Ok(())
    }

    async fn revoked(&self, (): &()) {
        std::future::pending::<()>().await;
    }

    async fn recipient(&self, (): &(), _: &EmailAddress) -> Result<(), Reply> {
        Ok(())
    }

    async fn receive(&self, incoming: &mut Vec<u8>, piece: Bytes) -> std::io::Result<()> {
        incoming.extend_from_slice(&piece);
        Ok(())
    }

    async fn deliver(&self, (): &(), _: Envelope, mut incoming: Vec<u8>, rest: Bytes) -> Delivered {
        incoming.extend_from_slice(&rest);
        let mut delivered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        delivered.push(incoming);
        Delivered::Reply(Reply::new(250, "2.0.0", "Recorded"))
    }
}
