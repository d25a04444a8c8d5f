//! Adjustment of probabilities for the number of comparisons.

/// Adjusts the probabilities of a family of comparisons, in place: if those of at most `rate` are accepted as
/// differences, the chance that any of these is none is at most `rate`, however they depend on each other.
///
/// # Source
/// Holm: A simple sequentially rejective multiple test procedure (1979).
#[allow(clippy::cast_precision_loss, reason = "the number of comparisons")]
pub(super) fn adjust(probabilities: &mut [f64]) {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let mut largest: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        let remaining = (probabilities.len() - rank) as f64;
        largest = largest.max(probabilities[index] * remaining).min(1.0);
        probabilities[index] = largest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjusted_probabilities_are_those_of_r() {
        // p.adjust(c(0.01, 0.04, 0.03, 0.005, 0.5), "holm")
        let mut probabilities = [0.01, 0.04, 0.03, 0.005, 0.5];
        adjust(&mut probabilities);
        for (adjusted, expected) in probabilities.iter().zip([0.04, 0.09, 0.09, 0.025, 0.5]) {
            assert!((adjusted - expected).abs() < 1e-12, "{adjusted} {expected}");
        }
        adjust(&mut []);
    }
}
