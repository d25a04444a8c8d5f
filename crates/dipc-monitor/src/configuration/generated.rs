//! Code that `cargo xtask schemas` generates from `schema`.

#[rustfmt::skip]
pub(crate) mod schema;
