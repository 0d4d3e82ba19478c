//! A connection to a neighbour: frames that say which call they belong to, and farewells.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::Gone;

/// What a frame is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Mean = 1,
    Broadcast = 2,
    Gather = 3,
    /// The last frame of a worker: who is missing, and why.
    Farewell = 4,
}

impl Kind {
    fn name(code: u8) -> &'static str {
        match code {
            1 => "a mean",
            2 => "a broadcast",
            3 => "a gathering",
            _ => "an unknown call",
        }
    }
}

/// Kind, call, bytes that follow.
const HEADER: usize = 1 + 8 + 8;
/// A farewell that is longer is not one.
const LONGEST_FAREWELL: usize = 4096;
/// A farewell waits no longer than this for a neighbour that does not read.
const PATIENCE: Duration = Duration::from_secs(1);

/// One direction of talk with a neighbour.
#[derive(Debug)]
pub(super) struct Link {
    stream: TcpStream,
    peer: usize,
    timeout: Duration,
}

impl Link {
    /// A connection to worker `peer`, which may be silent for `timeout`.
    pub fn new(stream: TcpStream, peer: usize, timeout: Duration) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Self { stream, peer, timeout })
    }

    /// Sends one frame.
    pub fn send(&self, kind: Kind, call: u64, payload: &[u8]) -> Result<(), Gone> {
        self.write(kind, call, payload).map_err(|error| self.gone(&error))
    }

    /// Receives the frame of this call, with as many bytes as `payload` has.
    pub fn receive(&self, kind: Kind, call: u64, payload: &mut [u8]) -> Result<(), Gone> {
        let mut stream = &self.stream;
        let mut header = [0; HEADER];
        stream.read_exact(&mut header).map_err(|error| self.gone(&error))?;
        let (code, rest) = (header[0], &header[1..]);
        let (theirs, bytes) = (word(&rest[..8]), word(&rest[8..]));
        if code == Kind::Farewell as u8 {
            return Err(self.read_farewell(theirs, bytes));
        }
        if code != kind as u8 || theirs != call || bytes != payload.len() as u64 {
            let (what, ours) = (Kind::name(code), Kind::name(kind as u8));
            let expected = payload.len();
            return Err(Gone {
                worker: self.peer,
                reason: format!(
                    "does not run the same program: its call {theirs} is {what} of {bytes} bytes, \
                     call {call} here is {ours} of {expected} bytes"
                ),
            });
        }
        stream.read_exact(payload).map_err(|error| self.gone(&error))
    }

    /// What this neighbour has to say at the end: whom it misses, or that it is gone itself. Nothing if it goes on.
    pub fn last_words(&self) -> Option<Gone> {
        let mut stream = &self.stream;
        let _ = self.stream.set_read_timeout(Some(PATIENCE));
        loop {
            let mut header = [0; HEADER];
            match stream.read_exact(&mut header) {
                Err(error) if is_silence(&error) => return None,
                Err(error) => return Some(self.gone(&error)),
                Ok(()) if header[0] == Kind::Farewell as u8 => {
                    return Some(self.read_farewell(word(&header[1..9]), word(&header[9..])));
                }
                // Part of a call that will not come to its end.
                Ok(()) => drop(io::copy(&mut stream.take(word(&header[9..])), &mut io::sink())),
            }
        }
    }

    /// Says which worker is missing, to a neighbour that may be gone itself.
    pub fn farewell(&self, worker: usize, reason: &str) {
        let _ = self.stream.set_write_timeout(Some(PATIENCE));
        let reason = &reason.as_bytes()[..reason.len().min(LONGEST_FAREWELL)];
        if let Err(error) = self.write(Kind::Farewell, worker as u64, reason) {
            tracing::debug!(%error, worker = self.peer, "no farewell");
        }
    }

    fn write(&self, kind: Kind, call: u64, payload: &[u8]) -> io::Result<()> {
        let mut stream = &self.stream;
        let mut header = [kind as u8; HEADER];
        header[1..9].copy_from_slice(&call.to_le_bytes());
        header[9..].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        stream.write_all(&header)?;
        stream.write_all(payload)
    }

    fn read_farewell(&self, worker: u64, bytes: u64) -> Gone {
        let mut reason = vec![0; (bytes as usize).min(LONGEST_FAREWELL)];
        let told = (&self.stream).read_exact(&mut reason).is_ok();
        let reason = String::from_utf8_lossy(&reason).into_owned();
        match usize::try_from(worker) {
            Ok(worker) if told => Gone { worker, reason },
            _ => Gone { worker: self.peer, reason: "left without a word".to_owned() },
        }
    }

    fn gone(&self, error: &io::Error) -> Gone {
        let reason = match error.kind() {
            _ if is_silence(error) => format!("has been silent for {} s", self.timeout.as_secs_f64()),
            io::ErrorKind::UnexpectedEof => "is gone: it closed the connection".to_owned(),
            _ => format!("is gone: {error}"),
        };
        Gone { worker: self.peer, reason }
    }
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}
