//! How a long evaluation tells how far it is, and is asked to end.

use std::ops::ControlFlow;

/// How far a long evaluation is.
///
/// What runs long takes a function of this and calls it after each piece of work. `ControlFlow::Break(())`
/// ends it: the result says that it is partial, and holds what was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub stage: &'static str,
    /// Pieces done.
    pub done: usize,
    /// Pieces in all.
    pub total: usize,
}

/// The function that a long evaluation tells its progress to.
pub type Watch<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

/// For those who do not want to watch.
///
/// ```
/// use jem_eval::{Progress, unwatched};
/// let progress = Progress { stage: "ais", done: 1, total: 2 };
/// assert!(unwatched(progress).is_continue());
/// ```
pub fn unwatched(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
