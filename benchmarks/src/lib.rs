//! What the measurements share: a catalogue of any size, made up with the skew of real ones.

pub mod catalogue;
