//! Vectors of millions of values.

/// Appends a value. The vector grows by an eighth instead of doubling.
pub(crate) fn push<T>(values: &mut Vec<T>, value: T) {
    if values.len() == values.capacity() {
        values.reserve_exact((values.len() / 8).max(1024));
    }
    values.push(value);
}
