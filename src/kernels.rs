//! Convolutions and activations of our own, for the device on which Burn's cost more than they must.
