//! Addresses: of memory, and of the runtime's structures, a type for each kind. They cannot be taken for one
//! another, or for counts and sizes.

/// Defines a kind of address.
macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name(u64);

        impl $name {
            /// Takes a number as such an address, without a check.
            pub const fn new(address: u64) -> Self {
                Self(address)
            }

            /// Returns the address as a number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// Returns true for zero, which no structure has.
            pub const fn is_null(self) -> bool {
                self.0 == 0
            }

            /// The address of a field of the structure.
            pub(crate) const fn at(self, offset: u64) -> u64 {
                self.0.wrapping_add(offset)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }
    };
}

address! {
    /// An address in the memory of the process: of an object, of a structure of the runtime, or of code. Null
    /// where the runtime has none.
    ///
    /// ```
    /// use clr_dump::Address;
    ///
    /// let object = Address::new(0x7f00_1000);
    /// assert_eq!((object.to_string(), format!("{object:x}")), ("0x7f001000".to_owned(), "7f001000".to_owned()));
    /// let next = object.saturating_add(24);
    /// assert_eq!((next.checked_sub(object), object.checked_sub(next)), (Some(24), None));
    /// ```
    Address
}

impl Address {
    /// Returns the address `bytes` above; the highest address if there is none.
    #[must_use]
    pub const fn saturating_add(self, bytes: u64) -> Self {
        Self(self.0.saturating_add(bytes))
    }

    /// Returns the address `bytes` below; null if there is none.
    #[must_use]
    pub const fn saturating_sub(self, bytes: u64) -> Self {
        Self(self.0.saturating_sub(bytes))
    }

    /// Returns the bytes from `start` up to this address; `None` if it is below `start`.
    pub const fn checked_sub(self, start: Self) -> Option<u64> {
        self.0.checked_sub(start.0)
    }
}

impl std::fmt::LowerHex for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::LowerHex::fmt(&self.0, f)
    }
}

address! {
    /// A type: the address of its MethodTable, or of a TypeDesc with a mark in the lowest bits (pointers,
    /// references).
    ///
    /// ```
    /// use clr_dump::TypeHandle;
    ///
    /// assert_eq!(TypeHandle::new(0x7f00_1000).to_string(), "0x7f001000");
    /// ```
    TypeHandle
}

address! {
    /// The runtime's description of a method: the address of its MethodDesc. Null where the runtime has none.
    MethodDesc
}

impl TypeHandle {
    /// The type that the first word of an object states. Its lowest bits are marks of a collection.
    pub(crate) const fn of_word(word: u64) -> Self {
        Self(word & !7)
    }

    /// The address of the TypeDesc; `None` of a MethodTable.
    pub(crate) const fn description(self) -> Option<u64> {
        if self.0 & 2 == 0 { None } else { Some(self.0.wrapping_sub(2)) }
    }
}
