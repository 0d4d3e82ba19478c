//! A slower link to a server on this machine, which counts what goes over it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Forwards every connection to a server, after a while.
pub struct Link {
    address: SocketAddr,
    bytes: [Arc<AtomicU64>; 2],
}

impl Link {
    /// A link to `server` with `latency` and a limit on the bytes per second, each way.
    pub fn to(server: SocketAddr, latency: Duration, bytes_per_second: f64) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let bytes: [Arc<AtomicU64>; 2] = Default::default();
        let [sent, received] = bytes.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(server) else { continue };
                let pair = |a: &TcpStream, b: &TcpStream| Some((a.try_clone().ok()?, b.try_clone().ok()?));
                let (Some(there), Some(back)) = (pair(&client, &server), pair(&server, &client)) else {
                    continue;
                };
                forward(there, sent.clone(), latency, bytes_per_second);
                forward(back, received.clone(), latency, bytes_per_second);
            }
        });
        Ok(Self { address, bytes })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes sent to the server and received from it.
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes[0].load(Ordering::Relaxed), self.bytes[1].load(Ordering::Relaxed))
    }
}

/// One way of a connection: bytes leave the line one after the other, and arrive a latency later.
fn forward(
    (mut from, mut to): (TcpStream, TcpStream),
    counted: Arc<AtomicU64>,
    latency: Duration,
    bytes_per_second: f64,
) {
    let _ = to.set_nodelay(true);
    let (line, arriving) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        for (due, bytes) in arriving {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        let mut line_free = Instant::now();
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            counted.fetch_add(count as u64, Ordering::Relaxed);
            line_free =
                line_free.max(Instant::now()) + Duration::from_secs_f64(count as f64 / bytes_per_second);
            if line.send((line_free + latency, buffer[..count].to_vec())).is_err() {
                break;
            }
        }
    });
}
