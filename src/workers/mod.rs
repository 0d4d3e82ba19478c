//! Workers of one run: processes or threads, on one machine or several, that average numbers over TCP.
//!
//! [`Workers`] is one worker's place in a ring. What it offers is what data-parallel training needs
//! ([`Trainer::with_workers`](crate::train::Trainer::with_workers)): the mean of a list of numbers over all workers,
//! the same bits on each of them; the bytes of the first; one word from each. A worker that is gone is an error
//! for all others that names it, and nothing waits longer than the time that was agreed on.
//!
//! What travels is neither encrypted nor authenticated: a network of your own, or a tunnel.

mod join;
mod link;
mod ring;

pub use join::WorkersConfig;

use link::{Kind, Link};

use crate::error::{Error, Result};

/// One worker's place among all.
///
/// Every worker must make the same calls in the same order. After an error the group is over: every further call
/// gives the same error, and the others get it too.
///
/// ```
/// use jem_core::workers::Workers;
///
/// // Two workers in two threads, through the loopback device.
/// let means: Vec<f32> = std::thread::scope(|scope| {
///     let threads: Vec<_> = Workers::local(2)?
///         .into_iter()
///         .map(|mut workers| {
///             scope.spawn(move || {
///                 let mut values = [workers.rank() as f32]; // 0 and 1
///                 workers.mean(&mut values).map(|()| values[0])
///             })
///         })
///         .collect();
///     threads.into_iter().map(|thread| thread.join().expect("no panic")).collect::<jem_core::Result<_>>()
/// })?;
/// assert_eq!(means, [0.5, 0.5]);
/// # Ok::<(), jem_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Workers {
    rank: usize,
    size: usize,
    /// To the next worker and from the one before; none where there is one worker only.
    ring: Option<Ring>,
    /// Calls made so far: a worker that is at another one does not run the same program.
    call: u64,
    ended: Option<(usize, String)>,
}

#[derive(Debug)]
struct Ring {
    next: Link,
    previous: Link,
}

impl Workers {
    /// A worker on its own, for which every call gives back what it was given.
    pub fn alone() -> Self {
        Self { rank: 0, size: 1, ring: None, call: 0, ended: None }
    }

    /// `size` workers for as many threads of this process.
    ///
    /// # Errors
    /// [`Error::Config`] for no worker, [`Error::Worker`] if the system refuses the connections.
    pub fn local(size: usize) -> Result<Vec<Self>> {
        join::local(size)
    }

    fn connected(rank: usize, size: usize, next: Link, previous: Link) -> Self {
        Self { rank, size, ring: Some(Ring { next, previous }), call: 0, ended: None }
    }

    /// Which of the workers this is, counted from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of workers.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Replaces each number by its mean over all workers, with the same bits on all.
    ///
    /// The numbers go once around the ring to be added and once more to be known, in as many parts as there are
    /// workers: each worker sends 2 (n - 1) / n times their size.
    ///
    /// # Errors
    /// [`Error::Worker`] naming a worker that is gone, is silent for too long, or brings another count of numbers.
    pub fn mean(&mut self, values: &mut [f32]) -> Result<()> {
        let (rank, size) = (self.rank, self.size);
        self.call(|ring, call| ring::mean(ring, rank, size, call, values))
    }

    /// The bytes of worker 0, whatever was handed in elsewhere.
    ///
    /// # Errors
    /// As [`mean`](Self::mean).
    pub fn broadcast(&mut self, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
        let (rank, size) = (self.rank, self.size);
        self.call(|ring, call| ring::broadcast(ring, rank, size, call, &mut bytes))?;
        Ok(bytes)
    }

    /// The word of every worker, in the order of their ranks.
    ///
    /// # Errors
    /// As [`mean`](Self::mean).
    pub fn gather(&mut self, word: u64) -> Result<Vec<u64>> {
        let (rank, size) = (self.rank, self.size);
        let mut words = vec![word; size];
        self.call(|ring, call| ring::gather(ring, rank, size, call, &mut words))?;
        Ok(words)
    }

    /// One call: refused once the group is over, and over for all if it fails.
    fn call(&mut self, work: impl FnOnce(&Ring, u64) -> Result<(), Gone>) -> Result<()> {
        if let Some((worker, reason)) = &self.ended {
            return Err(Error::worker(*worker, reason.clone()));
        }
        let Some(ring) = &self.ring else { return Ok(()) };
        self.call += 1;
        work(ring, self.call).map_err(|Gone { worker, reason }| {
            // The next worker waits for this one; it should hear who is missing.
            ring.next.farewell(worker, &reason);
            self.ended = Some((worker, reason.clone()));
            Error::worker(worker, reason)
        })
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if let (Some(ring), None) = (&self.ring, &self.ended) {
            let how = if std::thread::panicking() { "has panicked" } else { "has ended its run" };
            ring.next.farewell(self.rank, how);
        }
    }
}

/// Why a call failed: which worker is missing, and what is known of it.
#[derive(Debug)]
struct Gone {
    worker: usize,
    reason: String,
}
