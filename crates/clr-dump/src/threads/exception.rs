//! Exceptions that threads are handling or threw last, with their messages, causes and stacks.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/exinfo.h`, `vm/object.h` (`ExceptionObject`, `StackTraceArray`).

use std::time::Duration;

use hashbrown::HashSet;

use crate::code::map::{Code, CodeOrigin};
use crate::dump::view;
use crate::heap::regions::variables::is_moving;
use crate::memory::address::{Address, MethodDesc};
use crate::memory::{Memory, MemoryResult, Missing, offset};
use crate::runtime::layout::Thrown;
use crate::threads::thread::Thread;
use crate::types::method::Method;
use crate::unwind::FramePosition;

/// Maximum number of exceptions of a thread, and of causes of an exception.
const MAX_EXCEPTIONS: usize = 64;
/// Maximum number of frames of an exception.
const MAX_FRAMES: u64 = 8096;
/// The deepest nesting of the collections that the causes of an exception are in.
const COLLECTION_DEPTH: u32 = 4;

/// The number of times that the exceptions of a running thread are read, and the time between.
const MAX_READS: u32 = 20;
const TIME_BETWEEN_READS: Duration = Duration::from_millis(5);

/// An exception.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exception {
    /// The address of the object.
    pub address: Address,
    /// States if the address holds an exception. If it does not, all other fields are unknown.
    pub identity: Identity,
    /// The type as the runtime writes it; `None` if the memory lacks it.
    pub type_name: Option<String>,
    /// The message passed to the constructor; `None` if null, or if the memory lacks it.
    pub message: Option<String>,
    /// True if the memory lacks the message.
    pub lacks_message: bool,
    /// The name of the parameter, of an exception about an argument.
    pub parameter: Option<String>,
    /// The list index of the exception that this one caused; `None` for the outermost exception.
    pub cause_of: Option<usize>,
    /// The error code; `None` if the memory lacks it.
    pub hresult: Option<u32>,
    /// The return addresses of the frames that the exception passed, starting with the throwing frame.
    pub stack: Vec<ExceptionFrame>,
}

/// The result of checking that an address holds an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Identity {
    /// The object's type is or derives from `System.Exception`.
    Exception,
    /// The memory lacks its type or a base type of it.
    Unknown,
    /// Not an exception: the object was moved, or the memory is damaged.
    Other,
}

/// The exceptions of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadExceptions {
    /// Each with its causes, the outermost first, and each cause before its own. The thread's innermost
    /// exception is first.
    pub exceptions: Vec<(ExceptionState, Vec<Exception>)>,
    /// Missing memory, which can hide further exceptions.
    pub missing: Option<Missing>,
    /// True if objects were being moved, or the thread ran meanwhile: the data can belong to other objects.
    pub is_uncertain: bool,
}

/// A frame that an exception passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExceptionFrame {
    /// The instruction pointer.
    pub ip: Address,
    /// The method, with the code at the instruction pointer if the memory has it; null where the runtime has
    /// no MethodDesc.
    pub method_desc: MethodDesc,
    /// The managed code at the address.
    pub code: Option<Code>,
    /// An address in the instruction that threw, faulted or called.
    pub instruction: Address,
}

/// The part of an exception in a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExceptionState {
    /// Being thrown or handled.
    Current,
    /// The last exception that the thread threw.
    LastThrown,
}

view! {
    /// The exceptions of a dump.
    Exceptions, exceptions
}

impl Exceptions<'_> {
    /// Reads the exceptions of a thread of a process that runs meanwhile, until nothing has changed them: for
    /// 100 ms at most. If they changed each time, they are uncertain.
    pub fn of_running_thread(self, thread: &Thread) -> ThreadExceptions {
        let mut read = self.of_thread(thread);
        for _ in 1..MAX_READS {
            if !read.is_uncertain && read.missing.is_none() {
                break;
            }
            std::thread::sleep(TIME_BETWEEN_READS);
            read = self.of_thread(thread);
        }
        read
    }

    /// Reads the exceptions of a thread. A running process can change them meanwhile, which is noticed.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for thread in dump.threads().list()? {
    ///     println!("thread {}: {:?}", thread.os_id, dump.exceptions().of_thread(&thread));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_thread(self, thread: &Thread) -> ThreadExceptions {
        let (memory, runtime) = (self.memory(), self.runtime());
        let list = || self.addresses(thread);
        // Small core dumps lack it, and do not change.
        let is_moving = || is_moving(memory, runtime).unwrap_or_default();
        let was_moving = is_moving();
        let before = match list() {
            Ok(exceptions) => exceptions,
            Err(missing) => {
                return ThreadExceptions { missing: Some(missing), ..ThreadExceptions::default() };
            }
        };
        let read = before.iter().map(|(state, object)| (*state, self.chain(*object)));
        let exceptions: Vec<_> = read.collect();
        let is_uncertain =
            !exceptions.is_empty() && (was_moving || is_moving() || list().as_ref() != Ok(&before));
        ThreadExceptions { exceptions, missing: None, is_uncertain }
    }

    /// Returns the addresses of the exceptions of a thread, the innermost first.
    fn addresses(self, thread: &Thread) -> MemoryResult<Vec<(ExceptionState, Address)>> {
        let memory = self.memory();
        let mut exceptions: Vec<(ExceptionState, Address)> = Vec::new();
        let of_handle =
            |handle: u64| if handle == 0 { Ok(Address::default()) } else { memory.pointer(handle) };
        let mut add = |state, object: Address| {
            if !object.is_null() && exceptions.iter().all(|(_, other)| *other != object) {
                exceptions.push((state, object));
            }
        };
        let (fields, places) = (&self.runtime().layout.thread, &self.runtime().layout.exception_tracker);
        let mut tracker = memory.u64(thread.address.at(fields.exception_tracker))?;
        let mut seen = HashSet::new();
        while tracker != 0 && seen.len() < MAX_EXCEPTIONS && seen.insert(tracker) {
            let object = match places.thrown {
                Thrown::Handle(at) => of_handle(memory.u64(offset(tracker, at))?)?,
                Thrown::Object(at) => memory.pointer(offset(tracker, at))?,
            };
            add(ExceptionState::Current, object);
            tracker = memory.u64(offset(tracker, places.previous))?;
        }
        if let Some(last) = fields.last_thrown {
            let handle = memory.u64(thread.address.at(last))?;
            add(ExceptionState::LastThrown, of_handle(handle)?);
        }
        Ok(exceptions)
    }

    /// Reads an exception and its causes, the outermost first, and each cause before its own. Parts that the
    /// memory lacks are left out.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// # let address = clr_dump::Address::new(0x7f00_1000_2000);
    /// for exception in dump.exceptions().chain(address) {
    ///     println!("{:?}: {:?}, {} frames", exception.type_name, exception.message, exception.stack.len());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn chain(self, address: Address) -> Vec<Exception> {
        let (mut list, mut seen) = (Vec::new(), HashSet::new());
        let mut pending = vec![(address, None)];
        while let Some((next, cause_of)) = pending.pop() {
            if next.is_null() || list.len() >= MAX_EXCEPTIONS || !seen.insert(next) {
                continue;
            }
            let exception = Exception { cause_of, ..self.exception(next) };
            if exception.identity != Identity::Other {
                let index = Some(list.len());
                pending.extend(self.causes(next).into_iter().rev().map(|cause| (cause, index)));
            }
            list.push(exception);
        }
        list
    }

    /// Returns the addresses of the causes of an exception: several of an `AggregateException`.
    fn causes(self, address: Address) -> Vec<Address> {
        let memory = self.memory();
        let fields = ["_innerExceptions", "m_innerExceptions"];
        let collection = self.reference_field(address, &fields).unwrap_or_default();
        let causes = self.elements(collection, COLLECTION_DEPTH).unwrap_or_default();
        if causes.is_empty() {
            let inner = address.at(self.runtime().layout.exception.inner);
            return memory.pointer(inner).into_iter().collect();
        }
        causes
    }

    /// The reference in the object's first field that matches one of `names`; `None` if no field matches, or
    /// the memory lacks it.
    fn reference_field(self, address: Address, names: &[&str]) -> Option<Address> {
        let memory = self.memory();
        let type_handle = memory.object_type(address).ok()?;
        let fields = self.dump.types().fields(type_handle);
        let field = fields.iter().find(|field| names.contains(&&*field.name))?;
        memory.pointer(address.at(u64::from(field.offset).wrapping_add(8))).ok()
    }

    /// The elements of an array of references, or of a collection that holds such an array.
    fn elements(self, address: Address, depth: u32) -> Option<Vec<Address>> {
        let depth = depth.checked_sub(1).filter(|_| !address.is_null())?;
        let memory = self.memory();
        if self.dump.types().is_array(memory.object_type(address).ok()?) {
            let length = memory.u32(address.at(8)).ok()?;
            let most = u32::try_from(MAX_EXCEPTIONS).unwrap_or(u32::MAX);
            let element =
                |index: u32| memory.pointer(address.at(u64::from(index).wrapping_mul(8).wrapping_add(16)));
            let elements = (0..length.min(most)).map_while(|index| element(index).ok());
            return Some(elements.filter(|element| !element.is_null()).collect());
        }
        self.elements(self.reference_field(address, &["list", "_items"])?, depth)
    }

    fn exception(self, address: Address) -> Exception {
        let memory = self.memory();
        let type_handle = memory.object_type(address);
        let identity = type_handle.and_then(|handle| self.dump.types().derives_from_exception(handle));
        let identity = match identity {
            Ok(true) => Identity::Exception,
            Ok(false) => Identity::Other,
            Err(_) => Identity::Unknown,
        };
        let mut exception = Exception {
            address,
            identity,
            type_name: None,
            message: None,
            lacks_message: true,
            parameter: None,
            cause_of: None,
            hresult: None,
            stack: Vec::new(),
        };
        if identity == Identity::Other {
            return exception;
        }
        let fields = &self.runtime().layout.exception;
        let message = match memory.pointer(address.at(fields.message)) {
            Ok(message) if message.is_null() => Ok(None),
            Ok(message) => self.runtime().string(memory, message).map(Some),
            Err(missing) => Err(missing),
        };
        exception.type_name =
            type_handle.ok().and_then(|handle| self.dump.types().name(handle)).map(|name| name.to_string());
        exception.lacks_message = message.is_err();
        exception.message = message.ok().flatten();
        let parameter =
            self.reference_field(address, &["_paramName", "m_paramName"]).filter(|name| !name.is_null());
        exception.parameter = parameter.and_then(|name| self.runtime().string(memory, name).ok());
        exception.hresult = memory.u32(address.at(fields.hresult)).ok();
        exception.stack = self.exception_stack(address).unwrap_or_default();
        exception
    }

    fn exception_stack(self, address: Address) -> MemoryResult<Vec<ExceptionFrame>> {
        let memory = self.memory();
        let fields = &self.runtime().layout.exception;
        let mut array = memory.u64(address.at(fields.stack_trace))?;
        if array == 0 {
            return Ok(Vec::new());
        }
        if let Some(count) = fields.frame_count {
            let count = memory.u32(address.at(count))?.min(memory.u32(offset(array, 8))?);
            return self.exception_addresses(array, count.into());
        }
        // An array of bytes, or an array of objects that begins with it.
        let component =
            |array: u64| -> MemoryResult<u32> { Ok(memory.u32(memory.u64(array)? & !7)? & 0xffff) };
        if component(array)? == 8 {
            array = memory.u64(offset(array, 16))?;
        }
        if array == 0 || component(array)? != 1 {
            return Ok(Vec::new());
        }
        let length = u64::from(memory.u32(offset(array, 8))?);
        let count = memory.u64(offset(array, 16))?;
        // A count and a thread precede the frames.
        let most = length.saturating_sub(16) / 32;
        let mut frames = Vec::new();
        for index in 0..count.min(most).min(MAX_FRAMES) {
            let at = offset(array, index.wrapping_mul(32).wrapping_add(32));
            let [ip, _, method_desc] = memory.words(at)?;
            let ip = Address::new(ip);
            let code = self.runtime().code().find(memory, ip).ok().flatten();
            let is_return_address =
                fields.has_return_addresses && (index > 0 || is_after_call(memory, ip.get()));
            let instruction = if is_return_address { FramePosition::Caller.lookup_address(ip) } else { ip };
            frames.push(ExceptionFrame { ip, method_desc: MethodDesc::new(method_desc), code, instruction });
        }
        Ok(frames)
    }

    /// Reads frames that are return addresses only.
    fn exception_addresses(self, array: u64, count: u64) -> MemoryResult<Vec<ExceptionFrame>> {
        /// The mark between the frames of an exception that was thrown again.
        const SEPARATOR: Address = Address::new(1);
        let memory = self.memory();
        let mut frames = Vec::new();
        for index in 0..count.min(MAX_FRAMES) {
            let ip = memory.pointer(offset(array, index.wrapping_mul(8).wrapping_add(16)))?;
            if ip != SEPARATOR {
                let instruction = FramePosition::Caller.lookup_address(ip);
                let code = self.runtime().managed(memory, instruction);
                frames.push(ExceptionFrame { ip, method_desc: MethodDesc::default(), code, instruction });
            }
        }
        Ok(frames)
    }

    /// Returns the offset in its method's IL at which an exception passed a frame, as
    /// [`Types::il_offset`](crate::Types::il_offset) does.
    pub fn il_offset(self, frame: &ExceptionFrame) -> Option<u32> {
        self.dump.types().il_offset(frame.code.as_ref()?, frame.instruction)
    }

    /// Returns the method of a frame that an exception passed; `None` if the memory lacks the way to it, or
    /// leads to another one.
    pub fn method(self, frame: &ExceptionFrame) -> Option<Method> {
        match frame.code {
            Some(code @ Code { origin: CodeOrigin::Jit { .. } | CodeOrigin::NativeAot { .. }, .. }) => {
                self.dump.types().method(&code)
            }
            _ => self.dump.types().checked_method(frame.method_desc),
        }
    }
}

/// Returns true if a call of x86-64 ends at an address: relative, by a pointer, or by a register. The first
/// frame of an exception is after the call that threw it, or at the instruction that faulted.
fn is_after_call(memory: &dyn Memory, address: u64) -> bool {
    let before = memory.array::<6>(address.wrapping_sub(6));
    matches!(before, Ok([_, 0xe8, ..] | [0xff, 0x15, ..] | [.., 0xff, 0xd0..=0xd7]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::Dump;
    use crate::memory::tests::TestMemory;
    use crate::runtime::Runtime;
    use crate::runtime::layout::{NET_3_1, NET_9};

    const BASE: u64 = 0x1000;
    const DERIVED: u64 = 0x2000;
    const TEXT: u64 = 0x3000;
    const OBJECT_TYPE: u64 = 0x4000;

    /// A runtime with the types `System.Exception`, a type derived from it, and `System.String`.
    fn runtime(memory: &mut TestMemory) -> Runtime {
        let slots = &NET_9.slots;
        memory.put_words(0x100, &[BASE, TEXT]);
        for (at, parent) in [(OBJECT_TYPE, 0), (BASE, OBJECT_TYPE), (DERIVED, BASE), (TEXT, OBJECT_TYPE)] {
            memory.put_words(at, &[0, 0, parent, 0]);
        }
        Runtime::of_slots(&NET_9, &[(slots.exception_type, 0x100), (slots.string_type, 0x108)])
    }

    /// The words of an exception with a message and a cause.
    fn exception(type_handle: u64, message: u64, inner: u64) -> [u64; 16] {
        let mut words = [0; 16];
        (words[0], words[2], words[4], words[13]) = (type_handle, message, inner, 0x8013_1509 << 32);
        words
    }

    #[test]
    fn nothing_is_said_of_memory_that_is_not_an_exception() {
        let mut memory = TestMemory::default();
        let runtime = runtime(&mut memory);
        // A string is at the former address of the exception.
        memory.put_words(0x8000, &exception(TEXT, 0x9000, 0xa000));
        memory.put_words(0xb000, &exception(DERIVED, 0x9000, 0x8000));
        memory.put_words(0x9000, &[TEXT, 2 | 0x0069_0068 << 32, 0]);
        let dump = Dump::new(&memory, &runtime);
        let chain = dump.exceptions().chain(Address::new(0xb000));
        assert_eq!(chain.len(), 2, "{chain:?}");
        assert_eq!(chain[0].identity, Identity::Exception);
        assert_eq!((chain[0].message.as_deref(), chain[0].hresult), (Some("hi"), Some(0x8013_1509)));
        let other = &chain[1];
        assert_eq!((other.identity, other.address), (Identity::Other, Address::new(0x8000)));
        assert_eq!((&other.message, other.hresult, other.stack.len()), (&None, None, 0));
    }

    #[test]
    fn the_exceptions_of_a_thread_are_found_in_each_version() {
        for (layout, previous, thrown) in [(&NET_9, 0, 8), (&NET_3_1, 8, 64)] {
            let mut memory = TestMemory::default();
            let fields = &layout.thread;
            memory.put_words(0x100, &[0xe1, 0xe2, 0xe3]);
            memory.put_words(0x1000 + fields.exception_tracker, &[0x2000]);
            memory.put_words(0x1000 + fields.last_thrown.unwrap(), &[0x110]);
            // The outer exception leads to itself.
            for (tracker, next, handle) in [(0x2000, 0x3000, 0x100), (0x3000, 0x3000, 0x108)] {
                memory.put_words(tracker + previous, &[next]).put_words(tracker + thrown, &[handle]);
            }
            let runtime = Runtime::of_slots(layout, &[]);
            let found = Dump::new(&memory, &runtime).exceptions().addresses(&Thread::at(0x1000)).unwrap();
            let (current, last) = (ExceptionState::Current, ExceptionState::LastThrown);
            let expected = [(current, 0xe1), (current, 0xe2), (last, 0xe3)];
            let expected = expected.map(|(state, object)| (state, Address::new(object)));
            assert_eq!(found, expected, "{}", layout.major);
        }
    }

    #[test]
    fn a_message_is_a_text_and_nothing_else() {
        let mut memory = TestMemory::default();
        let runtime = runtime(&mut memory);
        memory.put_words(0x8000, &exception(DERIVED, 0x9000, 0));
        memory.put_words(0x9000, &[OBJECT_TYPE, 2 | 0x0069_0068 << 32, 0]);
        let dump = Dump::new(&memory, &runtime);
        let [exception] = &dump.exceptions().chain(Address::new(0x8000))[..] else { panic!() };
        assert_eq!((&exception.message, exception.lacks_message), (&None, true));
    }

    #[test]
    fn types_that_the_memory_lacks_are_not_taken_for_exceptions() {
        let mut memory = TestMemory::default();
        let runtime = runtime(&mut memory);
        memory.put_words(0x8000, &exception(0x5000, 0, 0));
        let dump = Dump::new(&memory, &runtime);
        assert_eq!(dump.exceptions().chain(Address::new(0x8000))[0].identity, Identity::Unknown);
        // Types that derive from each other.
        memory.put_words(0x5000, &[0, 0, 0x6000]).put_words(0x6000, &[0, 0, 0x5000]);
        let dump = Dump::new(&memory, &runtime);
        assert_eq!(dump.exceptions().chain(Address::new(0x8000))[0].identity, Identity::Other);
    }
}
