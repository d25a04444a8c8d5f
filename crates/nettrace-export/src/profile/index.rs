//! Indices into the tables of a profile.

macro_rules! indices {
    ($($(#[$docs:meta])* $name:ident)*) => {$(
        $(#[$docs])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns it as an index of the table.
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The index of an element of a table. A table exhausts memory before its indices overflow.
            pub(crate) fn of(index: usize) -> Self {
                debug_assert!(u32::try_from(index).is_ok(), "more elements than indices");
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    )*};
}

indices! {
    /// A process of a profile: an index of [`Profile::processes`](crate::Profile::processes).
    ProcessIndex
    /// A thread of a profile: an index of [`Profile::threads`](crate::Profile::threads).
    ThreadIndex
    /// A total of a profile: an index of [`Profile::stack_totals`](crate::Profile::stack_totals).
    TotalIndex
}
