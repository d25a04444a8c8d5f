//! Numbers as .NET writes them in the invariant culture.

use std::fmt::{self, Write as _};

/// A number, displayed as by .NET's `double.ToString(CultureInfo.InvariantCulture)`: the shortest digits that
/// read back, with an exponent from 1E+15 on and below 0.0001.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number(pub f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_nan() {
            return f.write_str("NaN");
        }
        if self.0.is_infinite() {
            return f.write_str(if self.0 > 0.0 { "Infinity" } else { "-Infinity" });
        }
        // `d.ddde-7`, with the shortest digits.
        let scientific = format!("{:e}", self.0);
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        match exponent.parse::<i32>() {
            Ok(exponent) if !(-4..15).contains(&exponent) => {
                let sign = if exponent < 0 { '-' } else { '+' };
                f.write_str(digits)?;
                f.write_char('E')?;
                write!(f, "{sign}{:02}", exponent.unsigned_abs())
            }
            _ => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn formats_numbers_as_dotnet_does() {
        let rows = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (60_544.0, "60544"),
            (24.5, "24.5"),
            (0.012_601_287_931_680_38, "0.01260128793168038"),
            (0.0001, "0.0001"),
            (0.000_01, "1E-05"),
            (0.000_012_5, "1.25E-05"),
            (123_456_789_012_345.0, "123456789012345"),
            (999_999_999_999_999.9, "999999999999999.9"),
            (1e15, "1E+15"),
            (123_456_789_012_345_680.0, "1.2345678901234568E+17"),
            (f64::MAX, "1.7976931348623157E+308"),
            (5e-324, "5E-324"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ];
        for (number, text) in rows {
            assert_eq!(Number(number).to_string(), text);
        }
    }
}
