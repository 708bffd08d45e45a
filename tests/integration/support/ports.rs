//! Ports for programs that can't be given a listener of the test's own, and for addresses that must be
//! known before anything listens there.

use std::net::{SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener};
use std::sync::Mutex;

/// Keeps the reservations until this process ends, however it ends.
static RESERVED: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// Ports on which nobody listens, on any address, and which no other test takes, of this process or of
/// another one beside it: each is reserved by an abstract socket of its number. They lie below those that
/// Linux gives to outgoing connections and to listeners on port 0.
pub fn reserve<const COUNT: usize>() -> [u16; COUNT] {
    let end = ephemeral_ports_begin().clamp(12_000, 32_768);
    [(); COUNT].map(|()| {
        loop {
            let port = rand::random_range(10_000..end);
            if let Some(reservation) = reservation(port) {
                RESERVED.lock().unwrap().push(reservation);
                return port;
            }
        }
    })
}

/// One such port of 127.0.0.1.
pub fn local_address() -> SocketAddr {
    let [port] = reserve();
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn reservation(port: u16) -> Option<UnixListener> {
    let name = UnixAddress::from_abstract_name(format!("mailgate-test-port-{port}")).unwrap();
    let reservation = UnixListener::bind_addr(&name).ok()?;
    // Something else of this machine may listen there.
    let is_free = TcpListener::bind(("0.0.0.0", port)).is_ok();
    is_free.then_some(reservation)
}

fn ephemeral_ports_begin() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    range.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_port_is_reserved_once() {
    let ports = reserve::<100>();
    for port in ports {
        assert!(reservation(port).is_none(), "{port} was reserved twice");
    }
    let different: std::collections::HashSet<u16> = ports.into_iter().collect();
    assert_eq!(different.len(), ports.len());
}
