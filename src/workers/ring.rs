//! Calls around the ring: everyone sends to the next worker while it receives from the one before.

use std::ops::Range;

use super::{Gone, Kind, Ring};

/// Adds the numbers of all workers, part by part, and divides by their count.
///
/// Part i starts at worker i, is added to around the ring, and then goes around once more. Every sum is formed in
/// one place and in one order, so that all workers end with the same bits.
pub(super) fn mean(ring: &Ring, rank: usize, size: usize, call: u64, values: &mut [f32]) -> Result<(), Gone> {
    let count = values.len();
    let part = |index: usize| -> Range<usize> { index * count / size..(index + 1) * count / size };
    for step in 0..size - 1 {
        let (ours, theirs) = (part(back(rank, step, size)), part(back(rank, step + 1, size)));
        let received = ring.exchange(call, &values[ours], theirs.len())?;
        values[theirs].iter_mut().zip(received).for_each(|(value, received)| *value += received);
    }
    for step in 0..size - 1 {
        let (ours, theirs) = (part(back(rank + 1, step, size)), part(back(rank, step, size)));
        let received = ring.exchange(call, &values[ours], theirs.len())?;
        values[theirs].copy_from_slice(&received);
    }
    let share = 1.0 / size as f32;
    values.iter_mut().for_each(|value| *value *= share);
    Ok(())
}

/// Passes the bytes of worker 0 on, from one worker to the next: their count, then they.
pub(super) fn broadcast(
    ring: &Ring,
    rank: usize,
    size: usize,
    call: u64,
    bytes: &mut Vec<u8>,
) -> Result<(), Gone> {
    if rank > 0 {
        let mut count = [0; 8];
        ring.previous.receive(Kind::Broadcast, call, &mut count)?;
        bytes.clear();
        bytes.resize(u64::from_le_bytes(count) as usize, 0);
        ring.previous.receive(Kind::Broadcast, call, bytes)?;
    }
    if rank + 1 < size {
        ring.send(Kind::Broadcast, call, &(bytes.len() as u64).to_le_bytes())?;
        ring.send(Kind::Broadcast, call, bytes)?;
    }
    Ok(())
}

/// Passes every worker's word around until all have all.
pub(super) fn gather(
    ring: &Ring,
    rank: usize,
    size: usize,
    call: u64,
    words: &mut [u64],
) -> Result<(), Gone> {
    for step in 0..size - 1 {
        let mut payload = [0; 8];
        ring.send(Kind::Gather, call, &words[back(rank, step, size)].to_le_bytes())?;
        ring.previous.receive(Kind::Gather, call, &mut payload)?;
        words[back(rank, step + 1, size)] = u64::from_le_bytes(payload);
    }
    Ok(())
}

/// The index that lies `steps`, at most `size`, behind `rank` in the ring.
fn back(rank: usize, steps: usize, size: usize) -> usize {
    (rank + size - steps) % size
}

impl Ring {
    /// Sends numbers to the next worker while `count` of them come from the one before: neither waits for the other,
    /// however many there are.
    fn exchange(&self, call: u64, values: &[f32], count: usize) -> Result<Vec<f32>, Gone> {
        let outgoing = bytes(values);
        let mut incoming = vec![0; 4 * count];
        let (sent, received) = std::thread::scope(|scope| {
            let sending = scope.spawn(|| self.next.send(Kind::Mean, call, &outgoing));
            let received = self.previous.receive(Kind::Mean, call, &mut incoming);
            (sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), received)
        });
        received?;
        sent.map_err(|gone| self.who_is_missing(gone))?;
        Ok(numbers(&incoming))
    }

    /// Sends to the next worker.
    fn send(&self, kind: Kind, call: u64, payload: &[u8]) -> Result<(), Gone> {
        self.next.send(kind, call, payload).map_err(|gone| self.who_is_missing(gone))
    }

    /// The next worker is gone, perhaps because it misses another: the one before may know, or be the one.
    fn who_is_missing(&self, next: Gone) -> Gone {
        self.previous.last_words().unwrap_or(next)
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; 4 * values.len()];
    for (bytes, value) in bytes.chunks_exact_mut(4).zip(values) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

fn numbers(bytes: &[u8]) -> Vec<f32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| f32::from_le_bytes(*word)).collect()
}
