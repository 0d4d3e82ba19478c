//! Checkpoints of PyTorch: the reference JEM code's, read and written without running anything in them.
//!
//! A file of `torch.save` is a zip archive of tensors beside a pickle, which is a program: Python would run any
//! function that it names. Here it is data. [`read_weights`] takes only pickles that rebuild tensors, and refuses
//! a file that names anything else. [`read()`] and [`write()`] go between a [`WideResNet`](crate::WideResNet)
//! and the checkpoints of the reference code of Grathwohl et al. 2020, arXiv 1912.03263:
//!
//! ```text
//! {"model_state_dict": {"f.conv1.weight": .., .., "class_output.bias": ..}, "replay_buffer": [n, 3, 32, 32]}
//! ```

mod archive;
mod guard;
mod layout;
mod pickle;
mod reference;
mod write;

pub use archive::read_weights;
pub use reference::{ReferenceCheckpoint, read};
pub use write::write;
