//! The error of a descriptor.

use crate::memory::address::Address;

/// An error in a descriptor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the runtime's data contract descriptor: {field} at {address}: {problem}")]
#[non_exhaustive]
pub struct ContractsError {
    /// The field of the header, or the path of names in the JSON, such as `types.Thread.OSId`; after the name
    /// of a sub-descriptor.
    pub field: String,
    /// The address of the field, or of the value in the JSON.
    pub address: Address,
    /// The problem.
    pub problem: String,
}
