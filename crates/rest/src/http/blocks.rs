//! Bytes that arrive in parts, kept in blocks: a large body is neither copied nor moved each time that it grows,
//! which would block other requests' thread.

/// The smallest and the largest block.
const LEAST: usize = 4 * 1024;
const MOST: usize = 256 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Blocks {
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
    length: usize,
    capacity: usize,
}

impl Blocks {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Adds a part, and reserves memory before it grows: as the bytes arrive, since a stated length costs nothing, and
    /// a quarter more, so that little is reserved in vain. Never beyond `limit`.
    ///
    /// # Errors
    ///
    /// The error of `room`.
    pub(crate) fn add<E>(
        &mut self,
        data: &[u8],
        limit: usize,
        room: impl FnOnce(usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let free = self.last.capacity() - self.last.len();
        let (first, rest) = data.split_at(free.min(data.len()));
        if rest.is_empty() {
            self.last.extend_from_slice(first);
        } else {
            let ahead = (self.capacity / 4).clamp(LEAST, MOST);
            let ahead = ahead.min(limit.saturating_sub(self.capacity));
            let more = rest.len().max(ahead);
            room(more)?;
            self.capacity += more;
            self.last.extend_from_slice(first);
            let mut next = Vec::with_capacity(more);
            next.extend_from_slice(rest);
            let full = std::mem::replace(&mut self.last, next);
            if !full.is_empty() {
                self.full.push(full);
            }
        }
        self.length += data.len();
        Ok(())
    }

    /// Joins all of it into one piece. If it lies in several, this briefly takes twice the memory. Yields to other
    /// tasks in between.
    pub(crate) async fn whole(self) -> Vec<u8> {
        if self.full.is_empty() {
            return self.last;
        }
        let mut whole = Vec::with_capacity(self.length);
        for block in self.full.into_iter().chain([self.last]) {
            whole.extend_from_slice(&block);
            drop(block);
            tokio::task::yield_now().await;
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_came_is_whole_and_room_was_asked_for_all_of_it(
            lengths in prop::collection::vec(prop_oneof![0_usize..10, 0_usize..20_000], 0..100),
        ) {
            let parts = (0_u8..).zip(lengths).map(|(filler, length)| vec![filler; length]);
            let parts: Vec<Vec<u8>> = parts.collect();
            let expected = parts.concat();
            let limit = expected.len() + 1;
            let (mut blocks, mut asked, mut length) = (Blocks::default(), 0, 0);
            for part in &parts {
                let added = blocks.add(part, limit, |more| {
                    asked += more;
                    Ok::<(), Infallible>(())
                });
                prop_assert!(added.is_ok());
                length += part.len();
                prop_assert_eq!(blocks.len(), length);
                prop_assert!(asked >= length);
                prop_assert!(asked <= (length + length / 4 + LEAST).min(limit));
                let held = blocks.full.iter().chain([&blocks.last]).map(Vec::capacity);
                prop_assert_eq!(held.sum::<usize>(), asked);
            }
            let runtime = tokio::runtime::Builder::new_current_thread().build()?;
            prop_assert_eq!(runtime.block_on(blocks.whole()), expected);
        }
    }

    #[tokio::test]
    async fn what_there_is_no_room_for_is_not_kept() {
        let mut blocks = Blocks::default();
        let added = blocks.add(b"first", 100_000, |_| Ok::<(), usize>(()));
        assert_eq!(added, Ok(()));
        assert_eq!(blocks.add(&[0; 5_000], 100_000, Err), Err(LEAST));
        assert_eq!(blocks.len(), 5);
        assert_eq!(blocks.whole().await, b"first");
    }
}
