//! Checkpoints of PyTorch: the reference JEM code's, read and written without running anything in them.
