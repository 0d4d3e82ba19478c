//! How workers find each other: addresses, greetings, and who refuses whom.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Workers;
use super::link::Link;
use crate::error::{Error, Result, ensure, ensure_positive};

/// What every greeting begins with; the digit counts the versions of what is said.
const MAGIC: [u8; 8] = *b"jem-cor1";
/// Between two tries to reach a worker that is not there yet.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a stranger that connects may take for its greeting.
const GREETING: Duration = Duration::from_secs(5);

/// Where the workers are, and which of them this one is.
///
/// ```no_run
/// use jem_core::workers::WorkersConfig;
/// // On the first of two machines; the other has rank 1.
/// let workers = WorkersConfig::new(["10.0.0.1:7000", "10.0.0.2:7000"], 0).join()?;
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkersConfig {
    /// `host:port` of every worker, in the order of their ranks; the same list for all.
    pub addresses: Vec<String>,
    /// Which of them this is.
    pub rank: usize,
    /// `host:port` to listen on, where it is not the address at which the others reach this one. Default none.
    pub listen: Option<String>,
    /// Seconds to wait for the others to come, and for a neighbour to say something later on. Longer than the
    /// slowest iteration and the writing of a checkpoint. Default 600.
    pub timeout_seconds: f64,
}

impl WorkersConfig {
    /// Worker `rank` of those at `addresses`.
    pub fn new<S: Into<String>>(addresses: impl IntoIterator<Item = S>, rank: usize) -> Self {
        let addresses = addresses.into_iter().map(Into::into).collect();
        Self { addresses, rank, listen: None, timeout_seconds: 600.0 }
    }

    /// Sets where to listen, such as `0.0.0.0:7000` behind a translated address.
    pub fn with_listen(mut self, address: impl Into<String>) -> Self {
        self.listen = Some(address.into());
        self
    }

    /// Sets how long others may be silent, in seconds.
    pub fn with_timeout_seconds(mut self, seconds: f64) -> Self {
        self.timeout_seconds = seconds;
        self
    }

    /// Waits for the neighbours in the ring and joins them.
    ///
    /// # Errors
    /// [`Error::Config`] naming a bad field or an address that does not resolve; [`Error::Worker`] naming a worker
    /// that does not come in time or counts the workers differently.
    pub fn join(self) -> Result<Workers> {
        let (rank, size) = (self.rank, self.addresses.len());
        ensure(size > 0, "WorkersConfig.addresses", "[]", "one address per worker")?;
        ensure(rank < size, "WorkersConfig.rank", rank, &format!("below the number of addresses, {size}"))?;
        ensure_positive("WorkersConfig.timeout_seconds", self.timeout_seconds)?;
        let allowed = "of some years at most";
        let timeout = Duration::try_from_secs_f64(self.timeout_seconds.min(1e9))
            .map_err(|_| Error::config("WorkersConfig.timeout_seconds", self.timeout_seconds, allowed))?;
        if size == 1 {
            return Ok(Workers::alone());
        }
        let own = self.listen.as_ref().unwrap_or(&self.addresses[rank]);
        let listener = TcpListener::bind(own)
            .map_err(|error| Error::worker(rank, format!("cannot listen on {own}: {error}")))?;
        Place { rank, size, timeout }.join(&listener, &self.addresses[(rank + 1) % size])
    }
}

/// Workers whose listeners are all in this process.
pub(super) fn local(size: usize) -> Result<Vec<Workers>> {
    ensure(size > 0, "Workers::local.size", size, "at least 1")?;
    if size == 1 {
        return Ok(vec![Workers::alone()]);
    }
    let failed =
        |error: io::Error| Error::worker(0, format!("cannot listen on the loopback device: {error}"));
    let listeners: Vec<TcpListener> =
        (0..size).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<io::Result<_>>().map_err(failed)?;
    let addresses: Vec<String> = listeners
        .iter()
        .map(|listener| listener.local_addr().map(|address| address.to_string()))
        .collect::<io::Result<_>>()
        .map_err(failed)?;
    let timeout = Duration::from_secs(600);
    let place = |rank| Place { rank, size, timeout };
    std::thread::scope(|scope| {
        let joining: Vec<_> = listeners
            .iter()
            .enumerate()
            .map(|(rank, listener)| {
                let next = &addresses[(rank + 1) % size];
                scope.spawn(move || place(rank).join(listener, next))
            })
            .collect();
        let joined = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        joining.into_iter().map(joined).collect()
    })
}

/// A place in the ring that is to be taken.
#[derive(Clone, Copy)]
struct Place {
    rank: usize,
    size: usize,
    timeout: Duration,
}

impl Place {
    fn join(self, listener: &TcpListener, next_address: &str) -> Result<Workers> {
        let Self { rank, size, timeout } = self;
        let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
        let deadline = Instant::now() + timeout;
        // The next worker's system answers as soon as it listens; its greeting comes once it looks.
        let mut to_next = self.reach(next, next_address, deadline)?;
        let failed =
            |worker| move |error: io::Error| Error::worker(worker, format!("left while joining: {error}"));
        to_next.write_all(&self.greeting()).map_err(failed(next))?;
        let mut from_previous = self.admit(listener, previous, deadline)?;
        from_previous.write_all(&self.greeting()).map_err(failed(previous))?;
        to_next.set_read_timeout(Some(timeout)).map_err(failed(next))?;
        let mut answer = [0; 16];
        to_next.read_exact(&mut answer).map_err(failed(next))?;
        self.check(&answer, next)?;
        let next = Link::new(to_next, next, timeout).map_err(failed(next))?;
        let previous = Link::new(from_previous, previous, timeout).map_err(failed(previous))?;
        Ok(Workers::connected(rank, size, next, previous))
    }

    /// Connects to the next worker, which may not be there yet.
    fn reach(&self, next: usize, address: &str, deadline: Instant) -> Result<TcpStream> {
        let resolved =
            |error: String| Error::config(format!("WorkersConfig.addresses[{next}]"), address, error);
        let mut tried = String::from("nothing tried");
        loop {
            let addresses: Vec<SocketAddr> = address
                .to_socket_addrs()
                .map_err(|error| resolved(format!("a host and a port ({error})")))?
                .collect();
            for address in &addresses {
                let left = deadline.saturating_duration_since(Instant::now()).max(PAUSE);
                match TcpStream::connect_timeout(address, left) {
                    Ok(stream) => return Ok(stream),
                    Err(error) => tried = error.to_string(),
                }
            }
            if Instant::now() >= deadline {
                let seconds = self.timeout.as_secs_f64();
                let reason = format!("cannot be reached at {address} within {seconds} s: {tried}");
                return Err(Error::worker(next, reason));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits for the worker before; whoever connects and does not greet as a worker is let go.
    fn admit(&self, listener: &TcpListener, previous: usize, deadline: Instant) -> Result<TcpStream> {
        let failed = |error: io::Error| Error::worker(self.rank, format!("cannot listen: {error}"));
        listener.set_nonblocking(true).map_err(failed)?;
        loop {
            match listener.accept() {
                Ok((mut stream, from)) => match greeting_of(&mut stream) {
                    Some(greeting) => return self.check(&greeting, previous).map(|()| stream),
                    None => tracing::warn!(%from, "a connection that is no worker's"),
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() >= deadline {
                        let reason = format!("has not come within {} s", self.timeout.as_secs_f64());
                        return Err(Error::worker(previous, reason));
                    }
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn greeting(&self) -> [u8; 16] {
        let mut greeting = [0; 16];
        greeting[..8].copy_from_slice(&MAGIC);
        greeting[8..12].copy_from_slice(&(self.size as u32).to_le_bytes());
        greeting[12..].copy_from_slice(&(self.rank as u32).to_le_bytes());
        greeting
    }

    /// Checks that a neighbour is the one expected, of a group of the same size.
    fn check(&self, greeting: &[u8; 16], expected: usize) -> Result<()> {
        let number =
            |at: usize| greeting[at..at + 4].iter().rev().fold(0, |n, byte| n << 8 | usize::from(*byte));
        let (size, rank) = (number(8), number(12));
        if greeting[..8] == MAGIC && size == self.size && rank == expected {
            return Ok(());
        }
        let Self { rank: own, size: count, .. } = self;
        let reason = if greeting[..8] == MAGIC {
            format!(
                "is expected, and what answers is worker {rank} of {size}; this is worker {own} of {count}"
            )
        } else {
            "is expected, and what answers is no worker of this version".to_owned()
        };
        Err(Error::worker(expected, reason))
    }
}

/// The greeting of whoever connected, if it is one.
fn greeting_of(stream: &mut TcpStream) -> Option<[u8; 16]> {
    let mut greeting = [0; 16];
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(GREETING)).ok()?;
    stream.read_exact(&mut greeting).ok()?;
    (greeting[..8] == MAGIC).then_some(greeting)
}
