//! The environment of the process.

use crate::codec::{Decode, Decoder, Encode, Encoder};
use crate::payload::payload;
use crate::{DecodeError, EncodeError, HResult};
use alloc::string::String;
use alloc::vec::Vec;

payload! {
    /// ProcessEnvironment (0x0402): asks for the environment block, without a payload.
    ///
    /// After the reply, the connection carries [`EnvironmentReply::incoming_bytes`] bytes that
    /// [`Environment::from_bytes`] reads, and then ends.
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "ProcessEnvironment"; seen on .NET 8 to 10, unknown to 3.1.
    command PROCESS_ENVIRONMENT -> EnvironmentReply =>
    pub struct ProcessEnvironment;
}

payload! {
    /// The reply to [`ProcessEnvironment`]: the size of the environment that follows it.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | 4 | u32 | bytes that follow after this message, the 4 of their count included |
    /// | 4 | 2 | u16 | 0, for the future |
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "ProcessEnvironment"; .NET 9 and 10 include the count.
    #[non_exhaustive]
    pub struct EnvironmentReply {
        /// The length in bytes of the [`Environment`] that follows. Do not trust it: read up to it, and
        /// allocate as the bytes arrive.
        pub incoming_bytes: u32 = "incoming bytes",
        /// 0 so far.
        pub future: u16 = "future",
    }
}

impl EnvironmentReply {
    /// Returns the reply that announces `incoming_bytes` bytes.
    pub const fn new(incoming_bytes: u32) -> Self {
        Self { incoming_bytes, future: 0 }
    }
}

/// The environment block, which follows the reply to [`ProcessEnvironment`] outside of any message.
///
/// | offset | size | type | meaning |
/// |---|---|---|---|
/// | 0 | 4 | u32 | number of strings |
/// | 4 | … | strings | `NAME=value` each |
///
/// ```
/// use dipc_wire::Environment;
///
/// // The reply to ProcessEnvironment states the number of bytes that follow it.
/// let (reply, bytes) = Environment(vec!["LANG=C".to_owned()]).to_bytes()?;
/// assert_eq!(reply.incoming_bytes as usize, bytes.len());
/// let Environment(variables) = Environment::<Vec<String>>::from_bytes(&bytes)?;
/// assert_eq!(variables, ["LANG=C"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
/// Diagnostic IPC Protocol, "ProcessEnvironment".
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Environment<V = Vec<String>>(
    /// The variables in the runtime's order.
    pub V,
);

impl<'a, V: Decode<'a>> Environment<V> {
    /// Decodes the bytes that follow the reply. If the bytes are merely truncated, the error's
    /// [`is_incomplete`](DecodeError::is_incomplete) is true.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Decoder::new(bytes).take("environment").map(Self)
    }
}

impl<V: Encode> Environment<V> {
    /// Returns the reply that announces the environment, and the bytes that follow it.
    pub fn to_bytes(&self) -> Result<(EnvironmentReply, Vec<u8>), EncodeError> {
        let mut encoder = Encoder::new();
        encoder.put(&self.0, "environment")?;
        let bytes = encoder.into_bytes();
        let len = bytes.len();
        let incoming_bytes =
            u32::try_from(len).map_err(|_| EncodeError::TooManyItems { field: "environment", len })?;
        Ok((EnvironmentReply::new(incoming_bytes), bytes))
    }
}

payload! {
    /// SetEnvironmentVariable (0x0403): sets an environment variable of the process, or removes it.
    ///
    /// | offset | size | type | meaning |
    /// |---|---|---|---|
    /// | 0 | … | string | name |
    /// | … | … | string | value; count 0 removes the variable, a NUL alone is the empty value |
    ///
    /// Managed code sees the change if it has not read the environment yet: in practice, while the runtime is
    /// suspended at its start.
    ///
    /// ```
    /// use dipc_wire::{Command as _, SetEnvironmentVariable};
    ///
    /// let set = SetEnvironmentVariable { name: "DOTNET_gcServer", value: Some("1") };
    /// let remove = SetEnvironmentVariable { name: "DOTNET_gcServer", value: None::<&str> };
    /// // The value "1" with its NUL: two UTF-16 units.
    /// assert_eq!(set.to_bytes()?.len() - remove.to_bytes()?.len(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Source
    /// Diagnostic IPC Protocol, "SetEnvironmentVariable"; seen on .NET 9 and 10, unknown to 3.1.
    command SET_ENVIRONMENT_VARIABLE -> HResult =>
    pub struct SetEnvironmentVariable<S = String, V = Option<String>> {
        /// The variable's name.
        pub name: S = "variable name",
        /// The value of the variable; `None` removes it.
        pub value: V = "variable value",
    }
}
