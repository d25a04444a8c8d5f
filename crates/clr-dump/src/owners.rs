//! The memory of a process by its owners: each resident page is counted once, and what nobody is known to own
//! is a row of its own.
//!
//! Owners claim ranges of addresses, the best known first (`claims`): the collector's regions, code, arenas
//! of malloc, stacks. A mapping that nothing claims belongs to the owner that its name shows (`files`). The
//! kernel counts pages by mapping (`smaps`); a mapping with several owners is divided by its pages.

pub(crate) mod account;
mod claims;
mod files;
mod loader_heaps;
mod native;
pub(crate) mod owner;
mod parts;
mod runtime;
mod stacks;

#[cfg(test)]
mod tests;
