//! Conversion of clock ticks.

/// Nanoseconds in a second.
pub(super) const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Converts ticks of a clock of `frequency` to ticks of a clock of `target_frequency`, both in ticks per
/// second; saturates.
pub(super) fn convert_ticks(ticks: u64, frequency: u64, target_frequency: u64) -> u64 {
    let product = u128::from(ticks).saturating_mul(target_frequency.into());
    let converted = product.checked_div(frequency.into()).unwrap_or(u128::MAX);
    u64::try_from(converted).unwrap_or(u64::MAX)
}
