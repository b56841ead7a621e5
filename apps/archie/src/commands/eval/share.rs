//! A share of cases, with the interval in which the true share lies.

use std::fmt;

/// How many of some cases are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) right: usize,
    pub(super) of: usize,
}

impl Share {
    /// Returns the share, from 0 to 1; 0 of no cases.
    pub(super) fn value(self) -> f64 {
        self.right as f64 / self.of.max(1) as f64
    }

    /// Returns Wilson's interval at 95 %, which also holds for few cases and for shares near 0 and 1.
    pub(super) fn interval(self) -> (f64, f64) {
        if self.of == 0 {
            return (0.0, 1.0);
        }
        let (n, p) = (self.of as f64, self.value());
        let z2 = Z * Z;
        let middle = p + z2 / (2.0 * n);
        let half = Z * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
        let whole = 1.0 + z2 / n;
        ((middle - half) / whole, (middle + half) / whole)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.interval();
        let Self { right, of } = self;
        let value = self.value();
        write!(
            f,
            "{right} of {of}, {value:.2} (95 %: {low:.2} to {high:.2})"
        )
    }
}

/// Quantile of the normal distribution for 95 %.
const Z: f64 = 1.959_964;

#[test]
fn the_interval_is_wilsons() {
    let share = Share { right: 81, of: 100 };
    assert_eq!(share.to_string(), "81 of 100, 0.81 (95 %: 0.72 to 0.87)");
    let all = Share { right: 10, of: 10 };
    let (low, high) = all.interval();
    assert!((low - 0.7225).abs() < 0.001 && (high - 1.0).abs() < 1e-9);
}
