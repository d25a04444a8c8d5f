//! GCInfo that the tests write bit by bit, as its format describes it.

use super::*;
use crate::unwind::FramePosition;

const FORMAT: GcInfoFormat = GcInfoFormat { processor: Processor::X86_64, version: 4 };

/// A writer of bits, the lowest first.
#[derive(Default, Clone)]
struct Bits(Vec<bool>);

impl Bits {
    fn put(&mut self, value: u32, count: u32) -> &mut Self {
        self.0.extend((0..count).map(|bit| value >> bit & 1 != 0));
        self
    }

    /// A number of groups of `base` bits.
    fn number(&mut self, mut value: u32, base: u32) -> &mut Self {
        loop {
            self.put(value & ((1 << base) - 1), base);
            value >>= base;
            self.put(u32::from(value != 0), 1);
            if value == 0 {
                return self;
            }
        }
    }

    /// A number with a sign that fits into one group.
    fn signed(&mut self, value: i32, base: u32) -> &mut Self {
        self.put(value.cast_unsigned() & ((1 << base) - 1), base).put(0, 1)
    }

    fn align(&mut self) -> &mut Self {
        self.0.resize(self.0.len().next_multiple_of(8), false);
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        self.0.chunks(8).map(byte).collect()
    }
}

const RBX: SlotPlace = SlotPlace::Register(3);
const R15: SlotPlace = SlotPlace::Register(15);
const RAX: SlotPlace = SlotPlace::Register(0);

const fn stack(base: StackBase, offset: i32) -> SlotPlace {
    SlotPlace::Stack { base, offset }
}

/// A whole header of 100 bytes of code with rbp as frame register, and 16 bytes for arguments.
fn header(safe_points: &[u32], ranges: &[(u32, u32)]) -> Bits {
    let mut bits = Bits::default();
    bits.put(1, 1).put(0x40, 10).number(100, 8).number(0, 3).number(2, 3);
    bits.number(u32::try_from(safe_points.len()).unwrap(), 2);
    bits.number(u32::try_from(ranges.len()).unwrap(), 1);
    for point in safe_points {
        bits.put(*point, 7);
    }
    let mut last = 0;
    for (start, end) in ranges {
        bits.number(start - last, 6).number(end - start - 1, 6);
        last = *end;
    }
    bits
}

/// Slots: rax, rbx and r15, two places of the frame of which the second is interior, and an untracked one.
fn slots(bits: &mut Bits) {
    bits.put(1, 1).number(3, 2).put(1, 1).number(2, 2).number(1, 1);
    bits.number(0, 3).put(0, 2).number(2, 2).number(11, 2);
    bits.put(2, 2).signed(-3, 6).put(0, 2);
    bits.put(1, 2).number(4, 4);
    bits.put(0, 2).signed(2, 6).put(2, 2);
}

fn places(slots: &[GcSlot]) -> Vec<SlotPlace> {
    slots.iter().map(|slot| slot.place).collect()
}

fn live(bits: &Bits, offset: u32, position: FramePosition) -> Result<Vec<SlotPlace>, GcInfoError> {
    let bytes = bits.bytes();
    let info = GcInfo::decode(&bytes, FORMAT)?;
    info.live_slots(offset, position).map(|live| places(&live.tracked))
}

#[test]
fn reads_the_header_and_the_slots() {
    let mut bits = header(&[9, 30], &[(40, 60), (70, 90)]);
    slots(&mut bits);
    let bytes = bits.bytes();
    let info = GcInfo::decode(&bytes, FORMAT).unwrap();
    assert_eq!((info.code_length(), info.frame_register(), info.argument_area()), (100, Some(5), 16));
    assert_eq!(info.safe_points().collect::<Vec<_>>(), [9, 30]);
    assert_eq!(info.interruptible().collect::<Vec<_>>(), [40..60, 70..90]);
    let frame = stack(StackBase::FrameRegister, -24);
    assert_eq!(places(info.tracked()), [RAX, RBX, R15, frame, stack(StackBase::Sp, 8)]);
    let argument = GcSlot { place: stack(StackBase::CallerSp, 16), is_interior: false, is_pinned: true };
    assert_eq!(info.untracked(), [argument]);
    // Before version 4 they are the last bytes of calls. The kind of the return value is read, too.
    let mut bits = Bits::default();
    bits.put(0, 1).put(0, 1).put(0, 2).number(12, 8).number(1, 2).put(9, 4).put(0, 2);
    let older = bits.bytes();
    let info = GcInfo::decode(&older, GcInfoFormat { version: 3, ..FORMAT }).unwrap();
    assert_eq!(info.safe_points().collect::<Vec<_>>(), [10]);
}

#[test]
fn a_kind_of_return_value_precedes_the_length_until_version_3() {
    // A short header with a frame register, the kind, 12 bytes of code, no safe point and no slots.
    let mut bits = Bits::default();
    bits.put(0, 1).put(1, 1).put(3, 2).number(12, 8).number(0, 2).put(0, 2);
    for version in [2, 3] {
        let info = bits.bytes();
        let info = GcInfo::decode(&info, GcInfoFormat { version, ..FORMAT }).unwrap();
        assert_eq!((info.code_length(), info.frame_register()), (12, Some(5)));
    }
    for version in [1, 5] {
        let read = GcInfo::decode(&bits.bytes(), GcInfoFormat { version, ..FORMAT }).map(|_| ());
        assert_eq!(read, Err(GcInfoError::Version(version)));
    }
    // arm64 counts instructions.
    let mut bits = Bits::default();
    bits.put(0, 1).put(0, 1).number(3, 8).number(1, 3).put(2, 2).put(0, 2);
    let bytes = bits.bytes();
    let info = GcInfo::decode(&bytes, GcInfoFormat { processor: Processor::Aarch64, version: 4 }).unwrap();
    assert_eq!((info.code_length(), info.safe_points().collect::<Vec<_>>()), (12, vec![8]));
}

#[test]
fn a_safe_point_has_a_bit_for_each_slot() {
    let mut bits = header(&[9, 30], &[]);
    slots(&mut bits);
    // Plain states of both: rbx and the frame's slot, then rax and r15.
    bits.put(0, 1).put(0b01010, 5).put(0b00101, 5);
    let frame = stack(StackBase::FrameRegister, -24);
    assert_eq!(live(&bits, 9, FramePosition::Caller), Ok(vec![RBX, frame]));
    // A callee need not preserve rax.
    assert_eq!(live(&bits, 30, FramePosition::Caller), Ok(vec![R15]));
    assert_eq!(live(&bits, 31, FramePosition::Caller), Ok(vec![]));
    assert_eq!(live(&bits, 9, FramePosition::Innermost), Err(GcInfoError::NoSafePoint));
}

#[test]
fn safe_points_can_share_states_as_runs() {
    let mut bits = header(&[9, 30, 50], &[]);
    slots(&mut bits);
    // A table of numbers of 6 bits: the first and the last share the states at bit 0.
    bits.put(1, 1).number(5, 3).put(0, 6).put(20, 6).put(0, 6).align();
    let start = bits.0.len();
    // Runs: one dead, two live, two dead.
    bits.put(1, 1).put(0, 1).number(1, 4).number(1, 2).number(1, 4);
    bits.0.resize(start + 20, false);
    // Runs of mostly live slots: none dead, four live, one dead.
    bits.put(1, 1).put(1, 1).number(0, 2).number(3, 4).number(0, 2);
    assert_eq!(live(&bits, 9, FramePosition::Caller), Ok(vec![RBX, R15]));
    assert_eq!(live(&bits, 50, FramePosition::Caller), Ok(vec![RBX, R15]));
    let frame = stack(StackBase::FrameRegister, -24);
    assert_eq!(live(&bits, 30, FramePosition::Caller), Ok(vec![RBX, R15, frame]));
}

#[test]
fn interruptible_code_has_states_by_chunk() {
    // Two ranges with 96 offsets: a chunk and a half.
    let mut bits = header(&[], &[(2, 66), (68, 100)]);
    slots(&mut bits);
    // Pointers of 6 bits to the data of the chunks, plus one.
    bits.number(6, 3).put(1, 6).put(33, 6).align();
    let start = bits.0.len();
    // The first chunk uses rax and rbx. At its end rbx is live; it changes at 10 and 20, rax at 5 and 40.
    bits.put(0, 1).put(0b00011, 5).put(0b10, 2);
    bits.put(1, 1).put(5, 6).put(1, 1).put(40, 6).put(0, 1);
    bits.put(1, 1).put(20, 6).put(0, 1);
    bits.0.resize(start + 32, false);
    // The second chunk uses r15, which is live to the end.
    bits.put(0, 1).put(0b00100, 5).put(1, 1).put(0, 1);
    let at = |offset| live(&bits, offset, FramePosition::Innermost);
    assert_eq!([2, 6, 7, 21, 22].map(at), [vec![], vec![], vec![RAX], vec![RAX], vec![RAX, RBX]].map(Ok));
    assert_eq!([41, 42, 65].map(at), [vec![RAX, RBX], vec![RBX], vec![RBX]].map(Ok));
    assert_eq!([68, 99].map(at), [vec![R15], vec![R15]].map(Ok));
    assert_eq!([1, 66, 100].map(at), [(); 3].map(|()| Err(GcInfoError::NoSafePoint)));
    // A return address belongs to the instruction before it; rax is not preserved.
    assert_eq!(live(&bits, 23, FramePosition::Caller), Ok(vec![RBX]));
}

#[test]
fn a_chunk_without_data_has_the_state_of_the_one_before() {
    let mut bits = header(&[], &[(0, 100)]);
    slots(&mut bits);
    bits.number(6, 3).put(1, 6).put(0, 6).align();
    bits.put(0, 1).put(0b00010, 5).put(1, 1).put(1, 1).put(3, 6).put(0, 1);
    let at = |offset| live(&bits, offset, FramePosition::Innermost);
    assert_eq!([2, 3, 99].map(at), [vec![], vec![RBX], vec![RBX]].map(Ok));
}

#[test]
fn untracked_slots_are_live_everywhere() {
    let mut bits = header(&[], &[]);
    bits.put(0, 1).put(1, 1).number(0, 2).number(1, 1).put(2, 2).signed(-1, 6).put(0, 2);
    let bytes = bits.bytes();
    let info = GcInfo::decode(&bytes, FORMAT).unwrap();
    let live = info.live_slots(55, FramePosition::Caller).unwrap();
    assert_eq!((live.tracked.len(), places(&live.untracked)), (0, vec![stack(StackBase::FrameRegister, -8)]));
}

#[test]
fn cut_information_is_an_error() {
    let mut bits = header(&[9, 30], &[(40, 60)]);
    slots(&mut bits);
    bits.put(0, 1).put(0b01010, 5).put(0b00101, 5);
    let bytes = bits.bytes();
    for length in 0..bytes.len() {
        let read = GcInfo::decode(&bytes[..length], FORMAT)
            .and_then(|info| info.live_slots(30, FramePosition::Caller));
        assert_eq!(read, Err(GcInfoError::Cut), "{length}");
    }
}

#[test]
fn numbers_that_no_method_has_are_damage() {
    // A length of zero, and one of 2^30 bytes.
    for length in [0, 1 << 30] {
        let mut bits = Bits::default();
        bits.put(0, 2).number(length, 8).put(0, 30);
        assert_eq!(GcInfo::decode(&bits.bytes(), FORMAT).map(|_| ()), Err(GcInfoError::Damaged));
    }
    // A base of stack slots that is not one, a register that the processor lacks, a number without end.
    let mut bits = header(&[], &[]);
    bits.put(0, 1).put(1, 1).number(1, 2).number(0, 1).put(3, 2).put(0, 30);
    assert_eq!(GcInfo::decode(&bits.bytes(), FORMAT).map(|_| ()), Err(GcInfoError::Damaged));
    let mut bits = header(&[], &[]);
    bits.put(1, 1).number(1, 2).put(0, 1).number(32, 3).put(0, 30);
    assert_eq!(GcInfo::decode(&bits.bytes(), FORMAT).map(|_| ()), Err(GcInfoError::Damaged));
    assert_eq!(GcInfo::decode(&[0xff; 64], FORMAT).map(|_| ()), Err(GcInfoError::Damaged));
}

#[test]
fn offsets_without_bits_are_limited_by_the_length() {
    let decode = |length, safe_points| {
        let mut bits = Bits::default();
        bits.put(0, 2).number(length, 8).number(safe_points, 2).put(0, 30);
        GcInfo::decode(&bits.bytes(), FORMAT).map(|info| info.safe_points().collect::<Vec<_>>())
    };
    assert_eq!(decode(1, 1), Ok(vec![0]));
    assert_eq!([2, u32::MAX].map(|count| decode(1, count)), [(); 2].map(|()| Err(GcInfoError::Damaged)));
    assert_eq!(decode(3, 4), Err(GcInfoError::Damaged));
}

#[test]
fn more_slots_than_a_method_has_are_damage() {
    let decode = |registers, stack, untracked| {
        let mut bits = header(&[], &[]);
        bits.put(1, 1).number(registers, 2).put(1, 1).number(stack, 2).number(untracked, 1);
        GcInfo::decode(&bits.bytes(), FORMAT).map(|_| ())
    };
    let part = slots::MAX_SLOTS - 2;
    assert_eq!(decode(1, 1, part), Err(GcInfoError::Cut));
    assert_eq!(decode(1, 2, part), Err(GcInfoError::Damaged));
    assert_eq!(decode(1, part, 2), Err(GcInfoError::Damaged));
    assert_eq!(decode(u32::MAX, u32::MAX, u32::MAX), Err(GcInfoError::Damaged));
}

/// Each byte of an example with other values: the slots are among those of the table, or it is an error.
#[test]
fn damaged_information_ends() {
    let mut plain = header(&[9, 30], &[(40, 60)]);
    slots(&mut plain);
    plain.put(0, 1).put(0b01010, 5).put(0b00101, 5).number(6, 3).put(1, 6).align();
    plain.put(1, 1).put(0, 1).number(1, 4).number(1, 2).number(1, 4).put(0b10, 2).put(0, 20);
    let bytes = plain.bytes();
    for at in 0..bytes.len() {
        for value in 0..=255 {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            let Ok(info) = GcInfo::decode(&damaged, FORMAT) else { continue };
            for offset in [9, 10, 30, 31, 41, 59] {
                for position in [FramePosition::Innermost, FramePosition::Caller] {
                    let Ok(live) = info.live_slots(offset, position) else { continue };
                    assert!(live.tracked.iter().all(|slot| info.tracked().contains(slot)));
                }
            }
        }
    }
}
