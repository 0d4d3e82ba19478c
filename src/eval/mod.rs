//! Evaluation: what a trained energy model knows beyond its accuracy.
