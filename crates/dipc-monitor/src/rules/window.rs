//! A sliding window over points of time.

use std::collections::VecDeque;
use std::time::Duration;

use nettrace::RelativeTime;

/// The points that are kept one by one; further ones share places, each a 65,536th of the window wide.
const MAX_POINTS: usize = 1 << 16;

/// The number of points within a window that ends at the last one.
///
/// Points have to be added in time order. A point leaves the window when it is older than the window is long.
#[derive(Debug, Clone)]
pub(crate) struct SlidingWindow {
    length: Duration,
    points: VecDeque<(RelativeTime, u64)>,
    count: u64,
}

impl SlidingWindow {
    pub(crate) const fn new(length: Duration) -> Self {
        Self { length, points: VecDeque::new(), count: 0 }
    }

    /// Adds a point, and returns the number of points in the window.
    pub(crate) fn add(&mut self, time: RelativeTime) -> u64 {
        let is_crowded = self.points.len() >= MAX_POINTS;
        let width = self.length / 65_536;
        match self.points.back_mut() {
            Some((last, count)) if is_crowded && time.saturating_duration_since(*last) <= width => {
                *count = count.saturating_add(1);
            }
            _ => self.points.push_back((time, 1)),
        }
        self.count = self.count.saturating_add(1);
        while let Some((oldest, count)) = self.points.front()
            && time.saturating_duration_since(*oldest) > self.length
        {
            self.count = self.count.saturating_sub(*count);
            self.points.pop_front();
        }
        self.count
    }

    pub(crate) fn clear(&mut self) {
        self.points.clear();
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(nanoseconds: u64) -> RelativeTime {
        RelativeTime::after_start(Duration::from_nanos(nanoseconds))
    }

    mod random {
        use super::*;

        proptest! {
            #[test]
            fn counts_points_in_the_window(
                steps in prop::collection::vec(0_u64..50, 1..200),
                length in 1_u64..200,
            ) {
                let mut window = SlidingWindow::new(Duration::from_nanos(length));
                let mut times: Vec<u64> = Vec::new();
                for step in steps {
                    let time = times.last().copied().unwrap_or_default() + step;
                    times.push(time);
                    let expected = times.iter().filter(|past| time - **past <= length).count();
                    prop_assert_eq!(window.add(at(time)), expected as u64);
                }
            }
        }
    }

    #[test]
    fn crowds_are_counted_in_bounded_memory() {
        let mut window = SlidingWindow::new(Duration::from_secs(60));
        let mut count = 0;
        for number in 0..1_000_000 {
            count = window.add(at(number * 1000));
        }
        assert_eq!(count, 1_000_000);
        assert!(window.points.len() <= MAX_POINTS + 1100, "{}", window.points.len());
        // Seconds later, the part of the points that has left.
        let left = window.add(at(60_500_000_000));
        assert!((499_000..=501_000).contains(&left), "{left}");
    }
}
