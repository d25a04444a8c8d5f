//! Code that `cargo xtask schemas` generates from `facts`.
#![allow(
    clippy::match_same_arms,
    clippy::similar_names,
    clippy::too_many_lines,
    clippy::unreadable_literal,
    clippy::wildcard_imports,
    reason = "made by a program"
)]

#[rustfmt::skip]
pub mod enums;
#[rustfmt::skip]
pub mod ids;
#[rustfmt::skip]
pub(crate) mod providers;
#[rustfmt::skip]
pub(crate) mod schemas;
#[rustfmt::skip]
pub mod sets;
#[rustfmt::skip]
pub(crate) mod views;
#[rustfmt::skip]
pub(crate) mod waits;
