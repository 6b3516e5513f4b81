//! Popularity: few things are requested often, and many seldom.

use fastrand::Rng;

/// Draws numbers by Zipf's law with the exponent 1: number n is drawn 1 / (n + 1) as often as number 0.
#[derive(Debug)]
pub(crate) struct Zipf {
    /// The sum of the weights up to each number.
    sums: Vec<f64>,
}

impl Zipf {
    /// Draws from `count` numbers.
    pub(crate) fn new(count: usize) -> Self {
        let weights = (1..=count).map(|rank| 1.0 / crate::cpu::ratio(rank as u64, 1));
        let sums = weights.scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        Self { sums: sums.collect() }
    }

    /// The next number.
    pub(crate) fn draw(&self, random: &mut Rng) -> usize {
        let total = self.sums.last().copied().unwrap_or_default();
        let point = random.f64() * total;
        self.sums.partition_point(|sum| *sum <= point).min(self.sums.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_number_is_drawn_by_its_share() {
        let (zipf, mut random) = (Zipf::new(1_000), Rng::with_seed(1));
        let draws: Vec<usize> = (0..100_000).map(|_| zipf.draw(&mut random)).collect();
        assert!(draws.iter().all(|number| *number < 1_000));
        // 1 / (1 + 1/2 + … + 1/1000) = 0.1336
        let first = draws.iter().filter(|number| **number == 0).count();
        assert!((12_860..13_860).contains(&first), "{first}");
    }
}
