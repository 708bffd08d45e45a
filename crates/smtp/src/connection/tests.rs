#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Mutex;

use proptest::prelude::*;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::ResolvesServerCertUsingSni;
use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split};

use super::*;
use crate::protocol::authentication::Mechanism;
use crate::protocol::data::BareNewline;

/// The largest message, 25 MiB.
const LIMIT: usize = 25 * 1024 * 1024;

/// Any valid `AUTH PLAIN`.
const AUTH: &str = "AUTH PLAIN AGEAYg==\r\n";

/// Keeps delivered messages, and requests pieces as early as possible.
#[derive(Clone, Default)]
struct Keeper {
    delivered: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Backend for Keeper {
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
        assert!(piece.len() < 2 * PIECE, "{} octets gathered", piece.len());
        incoming.extend_from_slice(&piece);
        Ok(())
    }

    async fn deliver(&self, (): &(), _: Envelope, mut all: Vec<u8>, rest: Bytes) -> Delivered {
        assert!(rest.len() < 2 * PIECE, "{} octets gathered", rest.len());
        all.extend_from_slice(&rest);
        self.delivered.lock().unwrap().push(all);
        Delivered::Reply(Reply::new(250, "2.0.0", "Taken"))
    }
}

fn settings() -> ConnectionSettings {
    let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
    ConnectionSettings {
        session: Arc::new(SessionSettings {
            hostname: "gate.example".to_owned(),
            maximum_line: 2_048,
            maximum_message: LIMIT,
            bare_newline: BareNewline::Refuse,
            maximum_recipients: 1,
            maximum_errors: 1,
            maximum_authentication_failures: 1,
            mechanisms: vec![Mechanism::Plain],
            starttls: false,
            ask_for_recipients: false,
        }),
        tls: TlsAcceptor::from(Arc::new(tls)),
        implicit_tls: true,
        listener: "test",
        balancers: TrustedPeers::default(),
        command: Duration::from_mins(1),
        content_idle: Duration::from_mins(1),
        minimum_rate: 1,
    }
}

/// How a client sends.
#[derive(Debug, Clone)]
struct Way {
    /// Sizes of its chunks, in a cycle; DATA if empty.
    chunks: Vec<usize>,
    /// Sizes of its packets, in a cycle.
    packets: Vec<usize>,
    /// It waits for each reply.
    lock_step: bool,
}

impl Way {
    /// The message as the client sends it, split where a reply is due.
    fn parts(&self, content: &[u8]) -> Vec<Vec<u8>> {
        if self.chunks.is_empty() {
            let mut stuffed = Vec::with_capacity(content.len());
            for line in content.split_inclusive(|octet| *octet == b'\n') {
                if line.starts_with(b".") {
                    stuffed.push(b'.');
                }
                stuffed.extend_from_slice(line);
            }
            stuffed.extend_from_slice(b".\r\n");
            return vec![b"DATA\r\n".to_vec(), stuffed];
        }
        let mut parts = Vec::new();
        let mut rest = content;
        for size in self.chunks.iter().cycle() {
            let is_last = *size >= rest.len();
            let (chunk, behind) = rest.split_at((*size).min(rest.len()));
            let last = if is_last { " LAST" } else { "" };
            let command = format!("BDAT {}{last}\r\n", chunk.len());
            parts.push([command.as_bytes(), chunk].concat());
            rest = behind;
            if is_last {
                break;
            }
        }
        parts
    }
}

async fn write(client: &mut WriteHalf<DuplexStream>, octets: &[u8], packets: &[usize]) {
    let mut rest = octets;
    for size in packets.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (packet, behind) = rest.split_at((*size).min(rest.len()));
        client.write_all(packet).await.unwrap();
        tokio::task::yield_now().await;
        rest = behind;
    }
}

async fn replies(client: &mut BufReader<ReadHalf<DuplexStream>>, count: usize) -> Vec<String> {
    let mut replies = Vec::new();
    while replies.len() < count {
        let mut line = String::new();
        client.read_line(&mut line).await.unwrap();
        assert!(!line.is_empty(), "the connection ended: {replies:?}");
        if line.get(3..4) == Some(" ") {
            replies.push(line);
        }
    }
    replies
}

/// Submits a message in this way, and another one after it on the same connection; returns what was delivered and the
/// replies to both.
async fn submit(content: &[u8], way: &Way) -> (Vec<Vec<u8>>, Vec<String>) {
    let (client, server) = duplex(64 * 1024);
    let (settings, keeper) = (settings(), Keeper::default());
    let stop = CancellationToken::new();
    let session = Session::new(Arc::clone(&settings.session), Encryption::Tls);
    let peer = IpAddr::from([127, 0, 0, 1]);
    let mut driver = Driver::new(server, session, peer, &settings, &keeper, &stop);
    let mut parts = vec![b"EHLO c\r\n".to_vec(), AUTH.as_bytes().to_vec()];
    for content in [content, b"second\r\n"] {
        parts.push(b"MAIL FROM:<a@x>\r\n".to_vec());
        parts.push(b"RCPT TO:<b@x>\r\n".to_vec());
        parts.extend(way.parts(content));
    }
    let client = async {
        let (read, mut write_half) = split(client);
        let mut read = BufReader::new(read);
        if way.lock_step {
            let mut all = Vec::new();
            for part in &parts {
                write(&mut write_half, part, &way.packets).await;
                all.extend(replies(&mut read, 1).await);
            }
            return all;
        }
        let octets = parts.concat();
        let writing = write(&mut write_half, &octets, &way.packets);
        tokio::join!(writing, replies(&mut read, parts.len())).1
    };
    let dialogue = async {
        driver.run().await;
        // Closes its end of the connection, which unblocks a client that is still waiting.
        drop(driver);
    };
    let ((), replies) = tokio::join!(dialogue, client);
    let delivered = keeper.delivered.lock().unwrap().clone();
    (delivered, replies)
}

fn check(content: &[u8], way: &Way) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (delivered, replies) = runtime.block_on(submit(content, way));
    let refused: Vec<&String> = replies
        .iter()
        .filter(|it| !it.starts_with(['2', '3']))
        .collect();
    assert!(refused.is_empty(), "{refused:?}");
    assert_eq!(delivered.len(), 2);
    assert!(delivered[0] == content, "another message arrived: {way:?}");
    assert_eq!(delivered[1], b"second\r\n");
}

/// Lines of many lengths, some with leading dots, with little repetition.
fn content(size: usize, seed: u64) -> Vec<u8> {
    let mut content = Vec::with_capacity(size + 1_000);
    let mut state = seed | 1;
    while content.len() < size {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let length = usize::try_from(state >> 55).unwrap();
        let first = b'-' + u8::try_from(state >> 40 & 63).unwrap();
        content.extend((0..length).map(|at| first + u8::try_from(at % 7).unwrap()));
        content.extend_from_slice(b"\r\n");
    }
    content.truncate(size.saturating_sub(2));
    if content.last() == Some(&b'\r') {
        content.pop();
        content.push(b'x');
    }
    content.extend_from_slice(b"\r\n");
    content
}

#[test]
fn the_largest_message_arrives_by_data_and_in_chunks_of_any_size() {
    let content = content(LIMIT, 1);
    for (chunks, lock_step) in [
        (vec![], true),
        (vec![8_192], true),
        (vec![300_000], true),
        (vec![8_192], false),
        (vec![LIMIT - 67], false),
    ] {
        let packets = vec![16_384];
        check(
            &content,
            &Way {
                chunks,
                packets,
                lock_step,
            },
        );
    }
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        Just(0_usize),
        1..100_usize,
        8_190..8_195_usize,
        65_530..65_540_usize,
        262_000..262_300_usize,
        300_000..400_000_usize,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_split_arrives_byte_for_byte(
        length in prop_oneof![0..3_000_usize, 0..800_000_usize],
        seed in any::<u64>(),
        mut chunks in prop::collection::vec(size(), 0..5),
        mut packets in prop::collection::vec(prop_oneof![1..10_usize, 500..100_000_usize], 0..5),
        lock_step in any::<bool>(),
    ) {
        // Only empty chunks would never end.
        if !chunks.is_empty() {
            chunks.push(5_000);
        }
        // Only single octets would take too long.
        packets.push(16_384);
        check(&content(length, seed), &Way { chunks, packets, lock_step });
    }
}

#[tokio::test]
async fn an_idle_connection_keeps_no_buffer() {
    let (client, server) = duplex(64 * 1024);
    let (settings, keeper) = (settings(), Keeper::default());
    let stop = CancellationToken::new();
    let session = Session::new(Arc::clone(&settings.session), Encryption::Tls);
    let peer = IpAddr::from([127, 0, 0, 1]);
    let mut driver = Driver::new(server, session, peer, &settings, &keeper, &stop);
    let (read, mut write_half) = split(client);
    let mut read = BufReader::new(read);
    let parts = [
        "EHLO c\r\n",
        AUTH,
        "MAIL FROM:<a@x>\r\n",
        "RCPT TO:<b@x>\r\n",
        "DATA\r\n",
        "Hello\r\n.\r\n",
        "NOOP\r\n",
    ];
    let client = async {
        for part in parts {
            write(&mut write_half, part.as_bytes(), &[7]).await;
            replies(&mut read, 1).await;
        }
    };
    tokio::select! {
        _ = driver.run() => panic!("the connection ended"),
        () = client => {}
    }
    assert!(driver.session.is_authenticated());
    assert_eq!((driver.input.capacity(), driver.output.capacity()), (0, 0));
}

/// The tests' backend does almost nothing, so this measures the connection itself.
#[test]
fn an_idle_connection_is_a_small_task() {
    let size = crate::listener::task_size::<Keeper>();
    assert!(size <= 2_304, "{size} bytes");
}
