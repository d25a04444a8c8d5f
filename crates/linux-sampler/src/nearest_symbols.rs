//! The symbols at some addresses only: all of a file or of the kernel together take megabytes.

use std::collections::BTreeSet;

/// The nearest symbols before some addresses, found in one pass over symbols in any order.
#[derive(Debug)]
pub(crate) struct NearestSymbols<N> {
    /// In order.
    addresses: Vec<u64>,
    /// The symbols before each address, and those past the last.
    gaps: Vec<Gap<N>>,
}

/// The symbols between two of the addresses.
#[derive(Debug)]
struct Gap<N> {
    /// The start of the first symbol.
    first: Option<u64>,
    last: Option<NearestSymbol<N>>,
}

/// A symbol near an address.
#[derive(Debug)]
pub(crate) struct NearestSymbol<N> {
    pub(crate) start: u64,
    /// Zero if it is not known.
    pub(crate) size: u64,
    pub(crate) name: N,
}

impl<N> NearestSymbols<N> {
    pub(crate) fn new(addresses: &BTreeSet<u64>) -> Self {
        let gaps = (0..=addresses.len()).map(|_| Gap { first: None, last: None });
        Self { addresses: addresses.iter().copied().collect(), gaps: gaps.collect() }
    }

    /// Adds a symbol. Of several at an address, the first is kept. `size` is zero if it is not known.
    pub(crate) fn add(&mut self, start: u64, size: u64, name: impl FnOnce() -> N) {
        let Some(gap) = self.gaps.get_mut(self.addresses.partition_point(|wanted| *wanted < start)) else {
            return;
        };
        gap.first = Some(gap.first.map_or(start, |first| first.min(start)));
        if gap.last.as_ref().is_none_or(|last| last.start < start) {
            gap.last = Some(NearestSymbol { start, size, name: name() });
        }
    }

    /// Returns the symbols, the last first. A size that is not known is the distance to the next symbol.
    pub(crate) fn into_symbols(self) -> Vec<NearestSymbol<N>> {
        let mut next: Option<u64> = None;
        let mut symbols = Vec::new();
        for gap in self.gaps.into_iter().rev() {
            if let Some(mut symbol) = gap.last {
                if symbol.size == 0 {
                    symbol.size = next.map_or(0, |next| next.saturating_sub(symbol.start));
                }
                symbols.push(symbol);
            }
            next = gap.first.or(next);
        }
        symbols
    }
}
