//! Sizes as users write them: `100MB`, `64MiB`, `1.5GB`.

/// The units, longer ones first, because they end with shorter ones.
const UNITS: [(&str, u64); 7] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("b", 1),
];

/// Parses a size in bytes.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let wrong = || format!("'{text}' is not a size; write it as 100MB, 64MiB or 1.5GB");
    let (number, unit) = UNITS
        .iter()
        .find_map(|(unit, size)| Some((lower.strip_suffix(unit)?.trim_end(), *size)))
        .ok_or_else(wrong)?;
    let number: f64 = number.parse().map_err(|_| wrong())?;
    #[allow(clippy::cast_precision_loss, reason = "sizes that people write")]
    let bytes = number * unit as f64;
    if !(1.0..1e18).contains(&bytes) {
        return Err(wrong());
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn forms_that_users_write() {
        for (text, bytes) in [
            ("100MB", 100_000_000),
            ("64 MiB", 64 << 20),
            ("1.5gb", 1_500_000_000),
            ("7b", 7),
            ("2KB", 2_000),
            ("1GiB", 1 << 30),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "100", "MB", "-1MB", "x MB", "0B", "NaNMB", "infGB", "1e300GB", "60s"] {
            assert!(parse(text).unwrap_err().contains("64MiB"), "{text}");
        }
    }
}
