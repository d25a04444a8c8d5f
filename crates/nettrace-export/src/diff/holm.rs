//! Adjustment of probabilities for the number of comparisons.

/// A test of a family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Member {
    /// The probability of such a difference by chance.
    pub(super) probability: f64,
    /// The part of the error rate that the test may use, relative to other members.
    pub(super) weight: f64,
}

/// The result of a test within its family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Adjusted {
    /// The adjusted probability: at most the error rate of the family if the test is accepted.
    pub(super) probability: f64,
    /// The level of the test alone: it is accepted if its own probability is at most that.
    pub(super) level: f64,
}

/// Adjusts the probabilities of a family of comparisons: if comparisons of at most `rate` are accepted as
/// differences, the chance that any of them is noise is at most `rate`, however they depend on each other.
///
/// # Source
/// Holm: A simple sequentially rejective multiple test procedure (1979), with the weights of its section 4.
pub(super) fn adjust(members: &[Member], rate: f64) -> Vec<Adjusted> {
    let ratio = |index: usize| members[index].probability / members[index].weight;
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by(|a, b| ratio(*b).total_cmp(&ratio(*a)));
    // The weights of a member and of later members, the largest ratio first.
    let mut sum = 0.0;
    let mut steps = Vec::with_capacity(members.len());
    for index in order {
        sum += members[index].weight;
        steps.push((index, sum));
    }
    let mut adjusted = vec![Adjusted { probability: 1.0, level: 0.0 }; members.len()];
    let (mut largest, mut stopped) = (0.0_f64, None);
    for (index, remaining) in steps.into_iter().rev() {
        largest = largest.max(ratio(index) * remaining).min(1.0);
        // After the first test that is not accepted, the rest has its share of the same rate.
        if largest > rate && stopped.is_none() {
            stopped = Some(remaining);
        }
        let level = rate * members[index].weight / stopped.unwrap_or(remaining);
        adjusted[index] = Adjusted { probability: largest, level };
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(of: &[(f64, f64)]) -> Vec<Member> {
        of.iter().map(|&(probability, weight)| Member { probability, weight }).collect()
    }

    #[test]
    fn adjusted_probabilities_match_r() {
        // p.adjust(c(0.01, 0.04, 0.03, 0.005, 0.5), "holm")
        let family = members(&[(0.01, 1.0), (0.04, 1.0), (0.03, 1.0), (0.005, 1.0), (0.5, 1.0)]);
        let adjusted = adjust(&family, 0.05);
        for (adjusted, expected) in adjusted.iter().zip([0.04, 0.09, 0.09, 0.025, 0.5]) {
            assert!((adjusted.probability - expected).abs() < 1e-12, "{adjusted:?} {expected}");
        }
        // Two are accepted; the third does not pass at a third of the rate.
        for (adjusted, expected) in adjusted.iter().zip([4.0, 3.0, 3.0, 5.0, 3.0]) {
            assert!((adjusted.level - 0.05 / expected).abs() < 1e-12, "{adjusted:?} {expected}");
        }
        assert_eq!(adjust(&[], 0.05), []);
    }

    /// By hand: the ratios are 0.02, 0.04 and 0.1 of weights 1, 0.5 and 0.5.
    #[test]
    fn weights_divide_the_rate() {
        let adjusted = adjust(&members(&[(0.02, 0.5), (0.02, 1.0), (0.05, 0.5)]), 0.05);
        let probabilities: Vec<_> = adjusted.iter().map(|it| it.probability).collect();
        for (found, expected) in probabilities.iter().zip([0.04, 0.04, 0.05]) {
            assert!((found - expected).abs() < 1e-12, "{probabilities:?}");
        }
    }

    #[test]
    fn a_test_is_accepted_at_its_own_level_if_it_is_in_its_family() {
        let mut random = crate::diff::random::Random::new(7);
        for _ in 0..200 {
            let family: Vec<_> = (0..=random.below(12))
                .map(|_| {
                    let thousandths = u32::try_from(random.below(1000)).unwrap();
                    let probability = (f64::from(thousandths) / 1000.0).powi(4);
                    Member { probability, weight: [1.0, 0.25][random.below(2)] }
                })
                .collect();
            for (member, adjusted) in family.iter().zip(adjust(&family, 0.05)) {
                let is_accepted = adjusted.probability <= 0.05;
                assert_eq!(is_accepted, member.probability <= adjusted.level, "{member:?} {adjusted:?}");
            }
        }
    }
}
