//! The map from the native code of a method to its IL, and the places of its variables, which the runtime
//! keeps for debuggers.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/debuginfostore.cpp`, `inc/nibblestream.h`, `inc/cordebuginfo.h`,
//! `inc/patchpointinfo.h`; `docs/design/datacontracts/DebugInfo.md`.

mod variables;

pub(crate) use self::variables::{NativeVariable, VariablePlace};
use crate::memory::{Memory, MemoryResult, Missing, offset};

/// Maximum number of bytes of a method's map.
const MAX_SIZE: u32 = 1 << 20;
/// Maximum number of bytes of the numbers that precede a map.
const MAX_HEADER: usize = 32;
/// Maximum number of local variables of a method.
const MAX_LOCALS: u32 = 1 << 16;

/// The form of a method's debug info.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DebugInfoForm {
    /// The data that can precede it; `None` if nothing does.
    pub(crate) patchpoints: Option<Patchpoints>,
    pub(crate) bounds: BoundsForm,
}

/// The form of the bounds: the native offsets with their IL offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoundsForm {
    /// Numbers of nibbles.
    Nibbles,
    /// Entries of equal numbers of bits, the lowest of which have the source.
    Bits { of_source: u32 },
}

/// PatchpointInfo, which code has that can be replaced while it runs. A byte with flags precedes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patchpoints {
    /// The offset of the number of local variables.
    pub(crate) locals: u64,
    /// The number of bytes before the variables, which have four each.
    pub(crate) size: u64,
}

/// The flag of PatchpointInfo.
const HAS_PATCHPOINTS: u8 = 1;
/// The value in the place of the size of bounds, if there are two: that of instrumented IL is first.
const HAS_INSTRUMENTED: u32 = u32::MAX;

/// Special values in the place of IL offsets (`ICorDebugInfo::MappingTypes`).
const NO_MAPPING: u32 = u32::MAX;
const PROLOG: u32 = u32::MAX - 1;
const EPILOG: u32 = u32::MAX - 2;
/// The lowest of them, which IL offsets are relative to.
const BASE: u32 = EPILOG;

/// The flag of an entry's source in numbers of nibbles: the entry has the instruction of a call
/// (`ICorDebugInfo::SourceTypes`). Entries without it divide the method into statements.
const CALL: u32 = 0x10;
/// The same flag in entries of bits.
const CALL_BIT: u32 = 1;

/// The debug info of the method of a place in code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DebugInfoPlace {
    pub(crate) form: DebugInfoForm,
    /// The address of the debug info.
    pub(crate) at: u64,
    /// The offset of the code from the start of its method.
    pub(crate) native: u32,
}

/// The addresses of the parts of a method's debug info, with their sizes.
struct Parts {
    bounds: (u64, u32),
    variables: (u64, u32),
}

impl DebugInfoPlace {
    /// Returns the IL offset of the code; `None` if the runtime has no map for it, or keeps it in another
    /// form.
    pub(crate) fn il_offset(self, memory: &dyn Memory) -> MemoryResult<Option<u32>> {
        let Some(Parts { bounds: (at, size), .. }) = self.parts(memory)? else { return Ok(None) };
        if size == 0 || size > MAX_SIZE {
            return Ok(None);
        }
        let bytes = memory.bytes(at, usize::try_from(size).unwrap_or_default())?;
        Ok(find(&bytes, self.form.bounds, self.native))
    }

    /// Returns the variables of the method with their places at the code; `None` if the runtime has no list
    /// of them, or keeps it in another form.
    pub(crate) fn variables(self, memory: &dyn Memory) -> MemoryResult<Option<Vec<NativeVariable>>> {
        let Some(Parts { variables: (at, size), .. }) = self.parts(memory)? else { return Ok(None) };
        let is_read = self.form.bounds != BoundsForm::Bits { of_source: 3 };
        if size == 0 || size > MAX_SIZE || !is_read {
            return Ok(None);
        }
        let bytes = memory.bytes(at, usize::try_from(size).unwrap_or_default())?;
        Ok(variables::read(&bytes, self.native))
    }

    fn parts(self, memory: &dyn Memory) -> MemoryResult<Option<Parts>> {
        let Some(at) = without_patchpoints(memory, self.form, self.at)? else { return Ok(None) };
        let header = available(memory, at, MAX_HEADER);
        let mut numbers = Nibbles::new(&header);
        let missing = || Missing { address: at };
        let mut size = numbers.number().ok_or_else(missing)?;
        let mut skipped = 0;
        if size == HAS_INSTRUMENTED && self.form.bounds != BoundsForm::Nibbles {
            skipped = numbers.number().ok_or_else(missing)?;
            size = numbers.number().ok_or_else(missing)?;
        }
        let of_variables = numbers.number().ok_or_else(missing)?;
        let bounds = offset(offset(at, numbers.whole_bytes()), skipped.into());
        let variables = offset(bounds, size.into());
        Ok(Some(Parts { bounds: (bounds, size), variables: (variables, of_variables) }))
    }
}

/// Returns the address of the debug info after PatchpointInfo; `None` after anything else.
fn without_patchpoints(memory: &dyn Memory, form: DebugInfoForm, at: u64) -> MemoryResult<Option<u64>> {
    let Some(patchpoints) = form.patchpoints else { return Ok(Some(at)) };
    let info = offset(at, 1);
    match memory.u8(at)? {
        0 => Ok(Some(info)),
        HAS_PATCHPOINTS => {
            let count = memory.u32(offset(info, patchpoints.locals))?;
            let size = patchpoints.size.wrapping_add(u64::from(count).wrapping_mul(4));
            Ok((count <= MAX_LOCALS).then(|| offset(info, size)))
        }
        _ => Ok(None),
    }
}

/// Reads `size` bytes, or those before the end of the memory.
fn available(memory: &dyn Memory, at: u64, size: usize) -> Vec<u8> {
    memory.bytes(at, size).unwrap_or_else(|_| {
        let byte = |index: usize| memory.u8(offset(at, u64::try_from(index).ok()?)).ok();
        (0..size).map_while(byte).collect()
    })
}

/// An entry of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bound {
    native: u32,
    il: u32,
    is_call: bool,
}

/// Returns the IL offset of the last entry not after a native offset; `None` for code after the method's end
/// that statements share: it throws.
///
/// Code that begins the method, or a handler in it, belongs to the first statement there; other code without
/// IL, and code that ends the method, to the code before it.
fn find(bytes: &[u8], form: BoundsForm, native: u32) -> Option<u32> {
    let mut place = Place::Start;
    let mut each = |bound: Bound| {
        let is_before = bound.native <= native;
        let next = match (bound.il, place) {
            _ if bound.is_call => return true,
            (NO_MAPPING, Place::End(_) | Place::Shared) => Place::Shared,
            (EPILOG, Place::Il(il)) => Place::End(il),
            (NO_MAPPING | EPILOG, place) => place,
            (PROLOG, _) => Place::Start,
            (il, _) => Place::Il(il),
        };
        if is_before || place == Place::Start {
            place = next;
        }
        is_before || place == Place::Start
    };
    match form {
        BoundsForm::Nibbles => of_nibbles(bytes, &mut each),
        BoundsForm::Bits { of_source } => of_bits(bytes, of_source, &mut each),
    }?;
    match place {
        Place::Il(il) | Place::End(il) => Some(il),
        // The method has no statement but its beginning.
        Place::Start => Some(0),
        Place::Shared => None,
    }
}

/// A part of a method's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The start of the method, or of a handler in it.
    Start,
    Il(u32),
    /// The end of the method, after the code of a statement.
    End(u32),
    /// Code after the end.
    Shared,
}

/// Passes the entries to `each` until it returns false. `None` if they are damaged.
fn of_nibbles(bytes: &[u8], each: &mut impl FnMut(Bound) -> bool) -> Option<()> {
    let mut numbers = Nibbles::new(bytes);
    let mut native = 0_u32;
    for _ in 0..numbers.number()? {
        native = native.checked_add(numbers.number()?)?;
        let il = numbers.number()?.wrapping_add(BASE);
        let is_call = numbers.number()? & CALL != 0;
        if !each(Bound { native, il, is_call }) {
            break;
        }
    }
    Some(())
}

/// The same for entries of equal numbers of bits.
fn of_bits(bytes: &[u8], of_source: u32, each: &mut impl FnMut(Bound) -> bool) -> Option<()> {
    let mut numbers = Nibbles::new(bytes);
    let count = numbers.number()?;
    let [of_native, of_il] = [numbers.number()?, numbers.number()?].map(|bits| bits.checked_add(1));
    let [of_native, of_il] = [of_native?, of_il?];
    if of_native > 32 || of_il > 32 {
        return None;
    }
    let mut bits = Bits { bytes, at: numbers.whole_bytes().checked_mul(8)? };
    let mut native = 0_u32;
    for _ in 0..count {
        let is_call = bits.take(of_source)? & CALL_BIT != 0;
        native = native.checked_add(bits.take(of_native)?)?;
        let il = bits.take(of_il)?.wrapping_add(BASE);
        if !each(Bound { native, il, is_call }) {
            break;
        }
    }
    Some(())
}

/// Numbers of nibbles: three bits each, the highest first; the fourth bit says that another follows. The
/// lower nibble of a byte is first.
struct Nibbles<'b> {
    bytes: &'b [u8],
    /// The number of nibbles that were read.
    count: usize,
}

impl<'b> Nibbles<'b> {
    const fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, count: 0 }
    }

    /// Reads a number; `None` if it is cut off, or too large.
    fn number(&mut self) -> Option<u32> {
        let mut value = 0_u32;
        loop {
            let byte = *self.bytes.get(self.count / 2)?;
            let nibble = if self.count.is_multiple_of(2) { byte & 15 } else { byte >> 4 };
            self.count = self.count.saturating_add(1);
            if value >> 29 != 0 {
                return None;
            }
            value = value << 3 | u32::from(nibble & 7);
            if nibble & 8 == 0 {
                return Some(value);
            }
        }
    }

    /// The number of bytes that were read, the last of them in part.
    fn whole_bytes(&self) -> u64 {
        u64::try_from(self.count.div_ceil(2)).unwrap_or(u64::MAX)
    }
}

/// Numbers of bits, the lowest first.
struct Bits<'b> {
    bytes: &'b [u8],
    at: u64,
}

impl Bits<'_> {
    /// Takes at most 32 bits.
    fn take(&mut self, count: u32) -> Option<u32> {
        let first = usize::try_from(self.at / 8).ok()?;
        let shift = u32::try_from(self.at % 8).ok()?;
        let end = self.at.checked_add(count.into())?;
        if end > u64::try_from(self.bytes.len()).ok()?.checked_mul(8)? {
            return None;
        }
        let bytes = self.bytes.get(first..)?.iter().take(5);
        let word = bytes.rev().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
        self.at = end;
        let mask = u64::MAX.checked_shl(count).map_or(u64::MAX, |above| !above);
        u32::try_from(word.wrapping_shr(shift) & mask).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::TestMemory;

    fn il_offset(
        memory: &dyn Memory,
        form: DebugInfoForm,
        at: u64,
        native: u32,
    ) -> MemoryResult<Option<u32>> {
        DebugInfoPlace { form, at, native }.il_offset(memory)
    }

    const PLAIN: DebugInfoForm = DebugInfoForm { patchpoints: None, bounds: BoundsForm::Nibbles };
    const PACKED: BoundsForm = BoundsForm::Bits { of_source: 2 };

    /// Packs numbers into nibbles.
    pub(super) fn nibbles(numbers: &[u32]) -> Vec<u8> {
        let mut nibbles = Vec::new();
        for number in numbers {
            let mut digits = vec![number & 7];
            let mut rest = number >> 3;
            while rest > 0 {
                digits.push(rest & 7 | 8);
                rest >>= 3;
            }
            digits.reverse();
            nibbles.extend(digits.into_iter().map(|digit| u8::try_from(digit).unwrap()));
        }
        nibbles.chunks(2).map(|pair| pair[0] | pair.get(1).copied().unwrap_or(0) << 4).collect()
    }

    /// Native offset, IL offset, and whether it is a call.
    type Entry = (u32, u32, bool);

    /// Code before the first statement, three statements of which the second has a call, and the end.
    const ENTRIES: [Entry; 6] = [
        (0, PROLOG, false),
        (9, 0, false),
        (20, 7, false),
        (31, 12, true),
        (40, 0x1234, false),
        (90, EPILOG, false),
    ];

    fn deltas(entries: &[Entry]) -> impl Iterator<Item = Entry> {
        let before = std::iter::once(0).chain(entries.iter().map(|entry| entry.0));
        let entries = entries.iter().zip(before);
        entries.map(|(entry, before)| (entry.0 - before, entry.1.wrapping_sub(BASE), entry.2))
    }

    fn as_nibbles(entries: &[Entry]) -> Vec<u8> {
        // Others have an empty stack.
        let numbers = deltas(entries).flat_map(|entry| [entry.0, entry.1, if entry.2 { CALL } else { 2 }]);
        nibbles(&std::iter::once(u32::try_from(entries.len()).unwrap()).chain(numbers).collect::<Vec<_>>())
    }

    fn as_bits(entries: &[Entry], of_source: u32) -> Vec<u8> {
        let mut bytes = nibbles(&[u32::try_from(entries.len()).unwrap(), 6 - 1, 13 - 1]);
        let (mut word, mut count) = (0_u128, 0);
        for (native, il, is_call) in deltas(entries) {
            for (value, bits) in [(if is_call { CALL_BIT } else { 2 }, of_source), (native, 6), (il, 13)] {
                word |= u128::from(value) << count;
                count += bits;
                while count >= 8 {
                    bytes.push(u8::try_from(word & 0xff).unwrap());
                    (word, count) = (word >> 8, count - 8);
                }
            }
        }
        bytes.push(u8::try_from(word & 0xff).unwrap());
        bytes
    }

    const EXPECTED: [(u32, u32); 9] =
        [(0, 0), (8, 0), (9, 0), (19, 0), (20, 7), (39, 7), (40, 0x1234), (89, 0x1234), (5000, 0x1234)];

    #[test]
    fn code_belongs_to_the_statement_before_it() {
        let forms = [
            (as_nibbles(&ENTRIES), BoundsForm::Nibbles),
            (as_bits(&ENTRIES, 2), PACKED),
            (as_bits(&ENTRIES, 3), BoundsForm::Bits { of_source: 3 }),
        ];
        for (bytes, form) in forms {
            for (native, il) in EXPECTED {
                assert_eq!(find(&bytes, form, native), Some(il), "{form:?} {native}");
            }
        }
    }

    #[test]
    fn shared_code_after_the_end_has_no_offset() {
        let entries = [
            (0, 3, false),
            (9, NO_MAPPING, false),
            (20, PROLOG, false),
            (31, 7, false),
            (50, EPILOG, false),
            (54, NO_MAPPING, false),
            (60, NO_MAPPING, false),
            (66, 21, false),
        ];
        let found = |native| find(&as_nibbles(&entries), BoundsForm::Nibbles, native);
        assert_eq!([0, 8, 9, 19, 20, 31, 50, 66].map(found), [3, 3, 3, 3, 7, 7, 7, 21].map(Some));
        assert_eq!([54, 65].map(found), [None; 2]);
        let empty = as_nibbles(&[(0, PROLOG, false), (5, EPILOG, false)]);
        assert_eq!(find(&empty, BoundsForm::Nibbles, 3), Some(0));
    }

    #[test]
    fn damaged_maps_have_no_offsets() {
        for (bytes, form) in [(as_nibbles(&ENTRIES), BoundsForm::Nibbles), (as_bits(&ENTRIES, 2), PACKED)] {
            for length in 0..bytes.len() {
                // An offset before the damage is known.
                let found = find(&bytes[..length], form, 5000);
                assert_eq!(found.filter(|_| length + 1 < bytes.len()), None, "{form:?} {length}");
            }
            assert_eq!(find(&[0xff; 40], form, 5000), None);
        }
        // More bits than a number has.
        assert_eq!(find(&nibbles(&[1, 40, 3, 0, 0, 0]), PACKED, 0), None);
    }

    #[test]
    fn sizes_precede_the_map() {
        let mut memory = TestMemory::default();
        let bounds = as_nibbles(&ENTRIES);
        let header = nibbles(&[u32::try_from(bounds.len()).unwrap(), 3]);
        memory.put(0x1000, &[header, bounds].concat());
        assert_eq!(il_offset(&memory, PLAIN, 0x1000, 25), Ok(Some(7)));
        assert!(il_offset(&memory, PLAIN, 0x9000, 25).is_err());
        // Without a map, with one that is too large, and with one that is cut off.
        memory.put(0x1000, &nibbles(&[0, 3]));
        assert_eq!(il_offset(&memory, PLAIN, 0x1000, 25), Ok(None));
        memory.put(0x1000, &nibbles(&[MAX_SIZE + 1, 3]));
        assert_eq!(il_offset(&memory, PLAIN, 0x1000, 25), Ok(None));
        memory.put(0x1000, &nibbles(&[100, 3]));
        assert!(il_offset(&memory, PLAIN, 0x1000, 25).is_err());
    }

    #[test]
    fn the_map_is_after_patchpoints_and_the_map_of_instrumented_code() {
        let patchpoints = Patchpoints { locals: 8, size: 12 };
        let form = DebugInfoForm { patchpoints: Some(patchpoints), bounds: PACKED };
        let bounds = as_bits(&ENTRIES, 2);
        let header = nibbles(&[HAS_INSTRUMENTED, 5, u32::try_from(bounds.len()).unwrap(), 0]);
        let after = [header, vec![0xee; 5], bounds].concat();
        let locals = [&[0; 8][..], &2_u32.to_le_bytes(), &[0; 8]].concat();
        let mut memory = TestMemory::default();
        memory.put(0x1000, &[&[HAS_PATCHPOINTS][..], &locals, &after].concat());
        assert_eq!(il_offset(&memory, form, 0x1000, 25), Ok(Some(7)));
        memory.put(0x1000, &[&[0][..], &after].concat());
        assert_eq!(il_offset(&memory, form, 0x1000, 25), Ok(Some(7)));
        // Other data, and more variables than a method has.
        memory.put(0x1000, &[&[2][..], &after].concat());
        assert_eq!(il_offset(&memory, form, 0x1000, 25), Ok(None));
        memory.put(0x1000, &[HAS_PATCHPOINTS, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(il_offset(&memory, form, 0x1000, 25), Ok(None));
    }
}
