//! Student's t distribution.

/// Returns the probability that a value of the distribution is at least as far from 0 as `t`, on either side.
/// 1 without degrees of freedom.
pub(super) fn two_sided(t: f64, degrees: f64) -> f64 {
    if t.is_nan() || degrees.is_nan() || degrees <= 0.0 {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    let t = t.abs();
    incomplete_beta(degrees / (t * t + degrees), degrees / 2.0, 0.5)
}

/// Returns the value that the distribution exceeds, on either side, with this probability.
pub(super) fn critical(probability: f64, degrees: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, degrees) > probability {
        high *= 2.0;
        if high > 1e12 {
            return f64::INFINITY;
        }
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if two_sided(middle, degrees) > probability { low = middle } else { high = middle }
    }
    high
}

/// The regularized incomplete beta function, computed as a continued fraction.
///
/// # Source
/// NIST Digital Library of Mathematical Functions, 8.17.22.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast below this limit; above it, that of the complement does.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let factor = (a * x.ln() + b * (1.0 - x).ln() - ln_beta(a, b)).exp() / a;
    factor / continued_fraction(x, a, b)
}

/// The fraction `1 + d1 / (1 + d2 / (1 + …))`, by the method of Lentz.
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut value, mut upper, mut lower) = (1.0, 1.0, 0.0);
    for step in 1..1000 {
        let m = f64::from(step / 2);
        let coefficient = if step % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        upper = away_from_zero(1.0 + coefficient / upper);
        lower = 1.0 / away_from_zero(1.0 + coefficient * lower);
        let factor = upper * lower;
        value *= factor;
        if (factor - 1.0).abs() < 1e-14 {
            break;
        }
    }
    value
}

fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// The logarithm of the gamma function, for positive numbers, by Stirling's series.
///
/// # Source
/// NIST Digital Library of Mathematical Functions, 5.11.1 and 5.5.1.
fn ln_gamma(mut x: f64) -> f64 {
    // The series is exact to 1e-14 from 10 on.
    let mut shift = 0.0;
    while x < 10.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series =
        (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / x;
    shift + (x - 0.5) * x.ln() - x + (2.0 * std::f64::consts::PI).ln() / 2.0 + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn critical_values_match_published_tables() {
        // The printed tables of the distribution, two-sided.
        for (probability, degrees, expected) in [
            (0.05, 1.0, 12.706),
            (0.05, 2.0, 4.303),
            (0.05, 10.0, 2.228),
            (0.05, 30.0, 2.042),
            (0.01, 4.0, 4.604),
            (0.01, 8.0, 3.355),
            (0.001, 8.0, 5.041),
            (0.001, 60.0, 3.460),
            (0.05, 1e6, 1.960),
        ] {
            let found = critical(probability, degrees);
            assert!((found - expected).abs() < 6e-4, "{probability} {degrees}: {found}");
        }
    }

    #[test]
    fn probabilities_of_few_degrees_have_closed_forms() {
        for t in [0.1f64, 1.0, 3.0, 40.0, 1e4] {
            let cauchy = 1.0 - 2.0 / std::f64::consts::PI * t.atan();
            assert!((two_sided(t, 1.0) / cauchy - 1.0).abs() < 1e-7, "{t}");
            let two = 1.0 - t / (2.0 + t * t).sqrt();
            assert!((two_sided(t, 2.0) - two).abs() < 1e-12, "{t}");
        }
        assert_eq!((two_sided(0.0, 5.0), two_sided(f64::INFINITY, 5.0)), (1.0, 0.0));
        assert_eq!((two_sided(3.0, 0.0), two_sided(f64::NAN, 3.0)), (1.0, 1.0));
    }
}
