//! Methods that show waits.

use std::fmt::Write as _;

use anyhow::{Result, bail};

use super::facts::Facts;
use super::heading;

/// Returns the source of `waits.rs`.
pub(super) fn code(facts: &Facts) -> Result<String> {
    let mut code = heading("Methods that tell of waits.");
    code.push_str("use crate::wait_role;\n\n/// The role and the pattern of each.\npub(crate) static FRAMES: &[(u8, &str)] = &[\n");
    for method in &facts.waits {
        let role = match method.role.as_str() {
            "Wait" => "WAIT",
            "Spin" => "SPINNING_WAIT",
            "Between" => "BETWEEN",
            "WaitForWork" => "WAIT_FOR_WORK",
            "Idle" => "IDLE",
            "BlockingCall" => "BLOCKING_CALL",
            other => bail!("waits.tsv: no role {other}"),
        };
        let _ = writeln!(code, "    // {}.\n    (wait_role::{role}, {:?}),", method.meaning, method.pattern);
    }
    code.push_str("];\n");
    Ok(code)
}
