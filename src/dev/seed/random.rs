//! Random numbers that are the same on every run and every machine: `SplitMix64` (Steele, Lea and Flood, 2014).

/// A generator.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// The numbers of a purpose, for the thing with this number.
    pub(super) fn of(purpose: u64, number: usize) -> Self {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        let mut random = Self(purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (number << 20));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if that is 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or_default()
    }

    /// A number from `least` to `most`.
    pub(super) fn between(&mut self, least: i64, most: i64) -> i64 {
        let span = u64::try_from(most - least + 1).unwrap_or(1);
        least + i64::try_from(self.below(span)).unwrap_or_default()
    }

    /// Whether something happens that happens so many times of a hundred.
    pub(super) fn percent(&mut self, times: u64) -> bool {
        self.below(100) < times
    }

    /// One of them.
    pub(super) fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let place = self.below(u64::try_from(of.len()).unwrap_or_default());
        of.get(usize::try_from(place).unwrap_or_default())
    }

    /// One of them, or nothing.
    pub(super) fn word(&mut self, of: &[&'static str]) -> &'static str {
        self.pick(of).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_each_time_and_spread() {
        let numbers = |purpose, number| {
            let mut random = Random::of(purpose, number);
            (0..8).map(|_| random.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1, 7), numbers(1, 7));
        assert_ne!(numbers(1, 7), numbers(1, 8));
        assert_ne!(numbers(1, 7), numbers(2, 7));
        let heads = (0..1_000).filter(|number| Random::of(3, *number).percent(30));
        assert!((250..350).contains(&heads.count()));
    }
}
