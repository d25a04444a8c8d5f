//! Exceptions: those that threads handle or have thrown last, with their messages, causes and stacks.
//!
//! # Source
//! dotnet/runtime `src/coreclr/vm/exinfo.h`, `vm/object.h` (`ExceptionObject`, `StackTraceArray`).

use hashbrown::HashSet;

use crate::code_map::{Code, CodeOrigin};
use crate::memory::{Memory, MemoryResult, offset};
use crate::names::Names;
use crate::runtime::Runtime;
use crate::thread::{Thread, string};

/// The most exceptions of a thread, and the most causes of one.
const MOST_EXCEPTIONS: usize = 64;
/// The most frames of an exception.
const MOST_FRAMES: u64 = 8096;

/// Offsets of fields of `System.Exception` that .NET 9 and 10 share.
const MESSAGE: u64 = 16;
const INNER: u64 = 32;
const STACK_TRACE: u64 = 48;
const HRESULT: u64 = 108;

/// An exception.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exception {
    /// The address of the object.
    pub address: u64,
    /// The type as the runtime writes it; `None` if the memory lacks it.
    pub type_name: Option<String>,
    /// The message that it was made with; `None` if it has none, or if the memory lacks it.
    pub message: Option<String>,
    /// Whether the memory lacks the message.
    pub lacks_message: bool,
    /// The error code; `None` if the memory lacks it.
    pub hresult: Option<u32>,
    /// The return addresses of the frames that it passed, the one that threw it first.
    pub stack: Vec<ExceptionFrame>,
}

/// A frame that an exception passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExceptionFrame {
    /// The instruction pointer.
    pub ip: u64,
    /// The method, with the code at the instruction pointer if the memory has it.
    pub method_desc: u64,
    /// Its code.
    pub code: Option<Code>,
}

/// The part of an exception in a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExceptionState {
    /// It is being thrown or handled.
    Current,
    /// It is the last one that the thread threw.
    LastThrown,
}

impl Runtime {
    /// Returns the addresses of the exceptions of a thread, the innermost first.
    ///
    /// # Errors
    /// If the memory lacks a part of the list.
    pub fn thread_exceptions(
        &self,
        memory: &dyn Memory,
        thread: &Thread,
    ) -> MemoryResult<Vec<(ExceptionState, u64)>> {
        let mut exceptions: Vec<(ExceptionState, u64)> = Vec::new();
        let mut add = |state, handle: u64| -> MemoryResult<()> {
            let object = if handle == 0 { 0 } else { memory.u64(handle)? };
            if object != 0 && exceptions.iter().all(|(_, other)| *other != object) {
                exceptions.push((state, object));
            }
            Ok(())
        };
        let fields = &self.layout.thread;
        let mut tracker = memory.u64(offset(thread.address, fields.exception_tracker))?;
        let mut seen = HashSet::new();
        while tracker != 0 && seen.len() < MOST_EXCEPTIONS && seen.insert(tracker) {
            let [previous, thrown] = memory.words(tracker)?;
            add(ExceptionState::Current, thrown)?;
            tracker = previous;
        }
        add(ExceptionState::LastThrown, memory.u64(offset(thread.address, fields.last_thrown))?)?;
        Ok(exceptions)
    }
}

impl Names<'_> {
    /// Reads an exception and its causes, the outermost first. Parts that the memory lacks are left out.
    pub fn exceptions(&self, address: u64) -> Vec<Exception> {
        let memory = self.memory();
        let (mut chain, mut seen) = (Vec::new(), HashSet::new());
        let mut next = address;
        while next != 0 && chain.len() < MOST_EXCEPTIONS && seen.insert(next) {
            chain.push(self.exception(next));
            next = memory.u64(offset(next, INNER)).unwrap_or_default();
        }
        chain
    }

    fn exception(&self, address: u64) -> Exception {
        let memory = self.memory();
        let message = match memory.u64(offset(address, MESSAGE)) {
            Ok(0) => Ok(None),
            Ok(message) => string(memory, message).map(Some),
            Err(missing) => Err(missing),
        };
        let type_handle = memory.u64(address).map(|word| word & !7);
        Exception {
            address,
            type_name: type_handle
                .ok()
                .and_then(|handle| self.type_name(handle))
                .map(|name| name.to_string()),
            lacks_message: message.is_err(),
            message: message.ok().flatten(),
            hresult: memory.u32(offset(address, HRESULT)).ok(),
            stack: self.exception_stack(address).unwrap_or_default(),
        }
    }

    fn exception_stack(&self, address: u64) -> MemoryResult<Vec<ExceptionFrame>> {
        let memory = self.memory();
        let mut array = memory.u64(offset(address, STACK_TRACE))?;
        if array == 0 {
            return Ok(Vec::new());
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
        // A count and a thread come before the frames.
        let most = length.saturating_sub(16) / 32;
        let mut frames = Vec::new();
        for index in 0..count.min(most).min(MOST_FRAMES) {
            let at = offset(array, index.wrapping_mul(32).wrapping_add(32));
            let [ip, _, method_desc] = memory.words(at)?;
            let code = self.runtime().code().find(memory, ip).ok().flatten();
            frames.push(ExceptionFrame { ip, method_desc, code });
        }
        Ok(frames)
    }

    /// Returns the method of a frame that an exception passed.
    pub fn exception_method(&self, frame: &ExceptionFrame) -> Option<crate::names::Method> {
        match frame.code {
            Some(code @ Code { origin: CodeOrigin::Jit { .. }, .. }) => self.method(&code),
            _ => self.method_of(frame.method_desc).ok(),
        }
    }
}
