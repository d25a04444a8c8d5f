//! The references of a thread's stack: those that GCInfo states, and words that can be references where it
//! does not.

use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use hashbrown::HashMap;

use crate::code::gc_info::{GcSlot, SlotPlace, StackBase};
use crate::code::map::Code;
use crate::code::method_info::FrameSlots;
use crate::heap::gc_root::stack_range;
use crate::memory::address::Address;
use crate::memory::offset;
use crate::threads::Threads;
use crate::threads::explicit_roots;
use crate::threads::stack::{Frame, Gap, Stack};
use crate::threads::thread::Thread;
use crate::unwind::registers::{Register, Registers};
use crate::unwind::{FramePosition, unwind};

/// Maximum number of references of a thread's stack.
const MAX_ROOTS: usize = 1 << 20;
/// Maximum number of bytes of a frame to search for words.
const MAX_FRAME: u64 = 1 << 20;
/// Maximum number of places in code to keep the slots of.
const MAX_PLACES: usize = 1 << 14;
/// Maximum number of slots to keep of all places.
const MAX_KEPT_SLOTS: usize = 1 << 20;

/// The references of a thread's stack.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StackRoots {
    /// The references, innermost first.
    pub roots: Vec<StackRoot>,
    /// Frames without readable slots: their words are searched.
    pub frames_without_slots: u64,
    /// True if the frames are incomplete: the whole stack has to be searched for words instead.
    pub is_incomplete: bool,
    /// True if references of outer frames are missing, because the limit of 1,048,576 was reached.
    pub is_truncated: bool,
}

/// A reference of a thread's stack: the address of an object, or one inside an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackRoot {
    /// The word.
    pub word: Address,
    /// The code of the frame; `None` for a word of the runtime's own data on the stack.
    pub code: Option<Code>,
    /// The place of the word.
    pub place: RootPlace,
}

/// The place of a word of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RootPlace {
    /// A register that has a reference at this place in the code.
    Register(Register),
    /// A place on the stack that has a reference at this place in the code.
    Stack {
        /// The register that the offset is relative to; `None` for the stack pointer of the caller.
        base: Option<Register>,
        /// The offset in bytes.
        offset: i32,
    },
    /// A word that can be a reference, of a frame without readable slots, or of the runtime's own data.
    Word,
}

impl RootPlace {
    /// Returns true if the code uses the reference.
    pub const fn is_exact(self) -> bool {
        !matches!(self, Self::Word)
    }
}

impl fmt::Display for RootPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register(register) => register.fmt(f),
            Self::Stack { base, offset } => {
                match base {
                    Some(register) => register.fmt(f)?,
                    None => f.write_str("caller's stack pointer")?,
                }
                let sign = if *offset < 0 { '-' } else { '+' };
                write!(f, "{sign}{:#x}", offset.unsigned_abs())
            }
            Self::Word => f.write_str("conservative"),
        }
    }
}

impl Threads<'_> {
    /// Returns the references of a thread's stack, given its own registers. Without them the frames begin
    /// with the innermost explicit frame, as those of [`stack`](Threads::stack).
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for thread in dump.threads().list()? {
    ///     let of = dump.threads().stack_roots(&thread, core.registers(thread.os_id));
    ///     for root in of.roots.iter().filter(|root| root.place.is_exact()) {
    ///         let name = root.code.and_then(|code| dump.types().method(&code)?.name);
    ///         println!("{:?} {:?}: {:?}", name, root.place, dump.heap().type_name(root.word));
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stack_roots(self, thread: &Thread, registers: Option<&Registers>) -> StackRoots {
        let mut reader = RootReader {
            threads: self,
            roots: StackRoots::default(),
            places: HashMap::new(),
            kept_slots: 0,
            parent: None,
            explicit: explicit_roots::frames(self.memory(), self.runtime(), thread),
            managed: Vec::new(),
        };
        let stack = self.runtime().visit_stack(self.memory(), thread, registers, &mut |frame, registers| {
            reader.frame(frame, registers);
        });
        let mut roots = reader.roots;
        let left = MAX_ROOTS.saturating_sub(roots.roots.len());
        roots.is_truncated = left == 0;
        if left > 0
            && let Some(range) = stack_range(thread, &stack, registers)
        {
            let parts = (range, &*reader.managed);
            let words = explicit_roots::words(self.memory(), self.runtime(), thread, &reader.explicit, parts);
            let root = |word| StackRoot { word, code: None, place: RootPlace::Word };
            roots.roots.extend(words.into_iter().filter(|word| !word.is_null()).take(left).map(root));
            roots.is_truncated = roots.roots.len() >= MAX_ROOTS;
        }
        roots.is_incomplete = self.runtime().is_native_aot() || !is_whole(&stack);
        roots
    }
}

/// Returns true if all managed frames were walked.
fn is_whole(stack: &Stack) -> bool {
    stack.gaps.iter().all(|(_, gap)| matches!(gap, Gap::Native(_) | Gap::LeftOut(_)))
}

/// The slots of a place in code; `None` if they cannot be read.
type Place = Option<Rc<FrameSlots>>;

/// A reader of the references of a stack, frame by frame.
struct RootReader<'d> {
    threads: Threads<'d>,
    roots: StackRoots,
    /// The slots by instruction pointer: a recursion has the same ones in each of its frames.
    places: HashMap<(u64, bool), Place>,
    /// The number of slots of these places.
    kept_slots: usize,
    /// The method whose funclet was walked.
    parent: Option<Parent>,
    /// The addresses of the thread's explicit frames, but for calls of native code.
    explicit: Vec<u64>,
    /// The parts of the stack that belong to managed frames.
    managed: Vec<Range<u64>>,
}

/// The method of a funclet: the frames up to that of its body were left by an exception, and the body has
/// the same slots as the funclet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parent {
    start: u64,
    frame_register: Option<u64>,
    /// The address of the explicit frame where the exception was thrown: frames below it handle the
    /// exception.
    thrown: u64,
}

impl RootReader<'_> {
    fn frame(&mut self, frame: &Frame, registers: &Registers) {
        let Some(code) = frame.code else { return };
        if self.is_full() {
            return;
        }
        let memory = self.threads.memory();
        let caller = unwind(memory, code.function, registers, frame.position).ok();
        let end = caller.map(|caller| caller.sp);
        self.managed.push(registers.sp..end.unwrap_or_else(|| offset(registers.sp, 8)));
        let slots = self.slots(frame);
        if let Some(slots) = &slots
            && self.is_left(slots, &code, registers)
        {
            return;
        }
        let words = slots.and_then(|slots| {
            let is_filter = slots.start != code.function.begin && self.threads.dump.types().is_filter(&code);
            let position = frame.position;
            let frame = FrameOf { slots: &slots, registers, caller_sp: end, position, is_filter };
            frame.words(self.threads)
        });
        if let Some(words) = words {
            for (place, word) in words {
                self.add(StackRoot { word, code: Some(code), place });
            }
            return;
        }
        self.roots.frames_without_slots = self.roots.frames_without_slots.saturating_add(1);
        self.search(&code, frame.position, registers, end);
    }

    /// Adds the words of a frame without readable slots.
    fn search(&mut self, code: &Code, position: FramePosition, registers: &Registers, end: Option<u64>) {
        let memory = self.threads.memory();
        let root =
            |word: u64| StackRoot { word: Address::new(word), code: Some(*code), place: RootPlace::Word };
        if position == FramePosition::Innermost {
            registers.values().for_each(|word| self.add(root(word)));
        }
        let start = registers.sp;
        let end = end.unwrap_or(start).min(start.saturating_add(MAX_FRAME));
        for at in (start & !7..end).step_by(8) {
            if self.is_full() {
                break;
            }
            let Ok(word) = memory.u64(at) else { break };
            self.add(root(word));
        }
    }

    fn add(&mut self, root: StackRoot) {
        if !root.word.is_null() && !self.is_full() {
            self.roots.roots.push(root);
        }
    }

    const fn is_full(&self) -> bool {
        self.roots.roots.len() >= MAX_ROOTS
    }

    /// The slots at a place in code.
    fn slots(&mut self, frame: &Frame) -> Place {
        let key = (frame.ip.get(), frame.position == FramePosition::Innermost);
        if let Some(place) = self.places.get(&key) {
            return place.clone();
        }
        let place = self.threads.dump.types().slots(frame).map(Rc::new);
        let live = place.as_ref().map(|slots| &slots.live);
        let count = live.map_or(0, |live| live.tracked.len().saturating_add(live.untracked.len()));
        self.kept_slots = self.kept_slots.saturating_add(count);
        if self.places.len() >= MAX_PLACES || self.kept_slots > MAX_KEPT_SLOTS {
            self.places.clear();
            self.kept_slots = count;
        }
        self.places.insert(key, place.clone());
        place
    }

    /// Returns true if a frame does not use its slots: it is between a funclet and the body of its method.
    fn is_left(&mut self, slots: &FrameSlots, code: &Code, registers: &Registers) -> bool {
        let is_funclet = slots.start != code.function.begin;
        let frame_register = slots.frame_register.and_then(|number| register(registers, number));
        let thrown = || self.explicit.iter().copied().find(|at| *at > registers.sp).unwrap_or(registers.sp);
        let Some(parent) = &mut self.parent else {
            // While a filter runs, no frame has been left.
            if is_funclet && !self.threads.dump.types().is_filter(code) {
                self.parent = Some(Parent { start: slots.start, frame_register, thrown: thrown() });
            }
            return false;
        };
        if (parent.start, parent.frame_register) == (slots.start, frame_register) {
            if is_funclet {
                // A funclet in a funclet: both have the slots of the body.
                parent.thrown = thrown();
            } else {
                self.parent = None;
            }
            return slots.is_reported_by_leaf_alone;
        }
        registers.sp > parent.thrown
    }
}

/// The value of a register by its number as instructions have it.
fn register(registers: &Registers, number: u8) -> Option<u64> {
    registers.get(Register::of_processor(registers.processor(), number))
}

/// A frame with its slots.
struct FrameOf<'f> {
    slots: &'f FrameSlots,
    registers: &'f Registers,
    caller_sp: Option<u64>,
    position: FramePosition,
    /// True if the body of the method, which has not been left, has the untracked slots.
    is_filter: bool,
}

impl FrameOf<'_> {
    /// The words in the slots; `None` if one of them cannot be read.
    fn words(&self, threads: Threads<'_>) -> Option<Vec<(RootPlace, Address)>> {
        let live = &self.slots.live;
        let tracked = live.tracked.iter().filter(|slot| !self.is_of_callee(slot));
        let word = |slot: &GcSlot| {
            let word = match slot.place {
                SlotPlace::Register(number) => register(self.registers, number)?,
                SlotPlace::Stack { base, offset } => {
                    threads.memory().u64(self.address(base, offset)?).ok()?
                }
            };
            Some((self.place(slot.place), Address::new(word)))
        };
        let untracked = live.untracked.iter().filter(|_| !self.is_filter);
        tracked.chain(untracked).map(word).collect()
    }

    fn place(&self, of: SlotPlace) -> RootPlace {
        let processor = self.registers.processor();
        let register = |number| Register::of_processor(processor, number);
        match of {
            SlotPlace::Register(number) => RootPlace::Register(register(number)),
            SlotPlace::Stack { base, offset } => RootPlace::Stack {
                base: match base {
                    StackBase::CallerSp => None,
                    StackBase::Sp => Some(Register::stack_pointer(processor)),
                    StackBase::FrameRegister => self.slots.frame_register.map(register),
                },
                offset,
            },
        }
    }

    /// Returns true if a slot is an argument that the callee can have overwritten.
    fn is_of_callee(&self, slot: &GcSlot) -> bool {
        let SlotPlace::Stack { base, offset } = slot.place else { return false };
        let inside = self.address(base, offset).and_then(|at| at.checked_sub(self.registers.sp));
        self.position == FramePosition::Caller && inside.is_some_and(|at| at < self.slots.argument_area)
    }

    fn address(&self, base: StackBase, offset: i32) -> Option<u64> {
        let base = match base {
            StackBase::CallerSp => self.caller_sp?,
            StackBase::Sp => self.registers.sp,
            StackBase::FrameRegister => register(self.registers, self.slots.frame_register?)?,
        };
        Some(base.wrapping_add_signed(offset.into()))
    }
}
