//! The identity of a span, as W3C Trace Context has it.

/// The ids of a span and its trace.
///
/// ```
/// use clr_activity::TraceContext;
///
/// let context = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
/// assert_eq!((context.span_id[0], context.flags), (0xb7, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(clippy::exhaustive_structs, reason = "version 00 of the specification has these parts")]
pub struct TraceContext {
    /// The id of the trace.
    pub trace_id: [u8; 16],
    /// The id of the span.
    pub span_id: [u8; 8],
    /// Bit 0: the caller recorded the trace.
    pub flags: u8,
}

impl TraceContext {
    /// Parses ids in hexadecimal digits; `None` if they are not ids, or zero.
    pub fn of_hex(trace_id: &str, span_id: &str, flags: u8) -> Option<Self> {
        let context = Self { trace_id: parse_hex(trace_id)?, span_id: parse_hex(span_id)?, flags };
        (context.trace_id != [0; 16] && context.span_id != [0; 8]).then_some(context)
    }

    /// Parses the header `traceparent`, which is also the id of an `Activity`:
    /// `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace_id, span_id) = (parts.next()?, parts.next()?, parts.next()?);
        let flags: [u8; 1] = parse_hex(parts.next()?)?;
        // Later versions add parts.
        (parse_hex::<1>(version)? != [0xff]).then(|| Self::of_hex(trace_id, span_id, flags[0]))?
    }
}

/// Parses bytes in hexadecimal digits.
fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != N.saturating_mul(2) {
        return None;
    }
    let mut bytes = [0_u8; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        for digit in pair {
            let digit = char::from(*digit).to_digit(16)?;
            *byte = (*byte).wrapping_shl(4) | u8::try_from(digit).ok()?;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_match_the_specification() {
        let context = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
        assert_eq!(context.trace_id[..2], [0x0a, 0xf7]);
        assert_eq!((context.span_id, context.flags), ([0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31], 1));
        for text in [
            "",
            "|abc.1.",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b71692033311-01",
            "00-0af7651916cd43dd8448eb211c8031zz-b7ad6b7169203331-01",
            "00-é\u{e9}f7651916cd43dd8448eb211c8031-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
    }
}
