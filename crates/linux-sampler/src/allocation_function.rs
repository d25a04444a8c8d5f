//! The functions that allocate and free memory, and the records about them.

/// The kinds of records.
pub(crate) const ALLOCATED: u32 = 1;
pub(crate) const FREED: u32 = 2;

/// The functions that allocate. Numbers are those in records.
///
/// Others lead to these: `reallocarray` and C++'s `new` call one of them, and `mmap64` is `mmap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllocatingFunction {
    Malloc = 0,
    Calloc = 1,
    Realloc = 2,
    AlignedAlloc = 3,
    Memalign = 4,
    PosixMemalign = 5,
    Mmap = 6,
    /// Memory that was mapped before gets another size, and perhaps another address.
    Mremap = 7,
    /// The break moves by a number of bytes. If it is negative, memory is freed.
    Sbrk = 8,
}

/// The arguments of a function that allocates, by number.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Arguments {
    pub(crate) size: u8,
    /// The number of items of that size.
    pub(crate) count: Option<u8>,
    /// Memory that it frees.
    pub(crate) old: Option<u8>,
    /// The bytes of that memory, if they are stated.
    pub(crate) old_size: Option<u8>,
    /// The place for the address, if that is not its result.
    pub(crate) result: Option<u8>,
}

impl AllocatingFunction {
    pub(crate) const ALL: [Self; 9] = [
        Self::Malloc,
        Self::Calloc,
        Self::Realloc,
        Self::AlignedAlloc,
        Self::Memalign,
        Self::PosixMemalign,
        Self::Mmap,
        Self::Mremap,
        Self::Sbrk,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Malloc => "malloc",
            Self::Calloc => "calloc",
            Self::Realloc => "realloc",
            Self::AlignedAlloc => "aligned_alloc",
            Self::Memalign => "memalign",
            Self::PosixMemalign => "posix_memalign",
            Self::Mmap => "mmap",
            Self::Mremap => "mremap",
            Self::Sbrk => "sbrk",
        }
    }

    pub(crate) const fn arguments(self) -> Arguments {
        let none = Arguments { size: 0, count: None, old: None, old_size: None, result: None };
        match self {
            Self::Malloc | Self::Sbrk => none,
            Self::Calloc => Arguments { count: Some(1), ..none },
            Self::Realloc => Arguments { size: 1, old: Some(0), ..none },
            Self::AlignedAlloc | Self::Memalign | Self::Mmap => Arguments { size: 1, ..none },
            Self::Mremap => Arguments { size: 2, old: Some(0), old_size: Some(1), ..none },
            Self::PosixMemalign => Arguments { size: 2, result: Some(0), ..none },
        }
    }
}

/// Returns the name of the function with a number.
pub(crate) fn function_name(number: u32) -> &'static str {
    let is_it = |function: &&AllocatingFunction| **function as u32 == number;
    AllocatingFunction::ALL.iter().find(is_it).map_or("", |function| function.name())
}

/// The functions that free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FreeingFunction {
    Free = 16,
    Munmap = 17,
}

impl FreeingFunction {
    pub(crate) const ALL: [Self; 2] = [Self::Free, Self::Munmap];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Munmap => "munmap",
        }
    }
}
