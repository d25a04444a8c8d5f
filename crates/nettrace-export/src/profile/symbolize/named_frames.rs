//! Frames by name, and their C# names.

use std::borrow::Cow;
use std::fmt;

use clr_events::code::Code;
use clr_events::csharp::{Detail, type_name};
use hashbrown::HashMap;

use crate::bounds;
use crate::profile::await_stack::AwaitFrame;
use crate::profile::frame::{CSharpText, FrameId, Frames};
use crate::profile::frame_kind::{FrameInfo, FrameKind};
use crate::profile::lines::SourceLine;
use crate::profile::pattern::Pattern;
use crate::profile::scheduler_frame::SchedulerFrame;

/// Frames by name, within [bounds].
#[derive(Default)]
pub(super) struct NamedFrames<'m> {
    pub(super) frames: Frames,
    /// Names that were cut.
    pub(super) cut: u64,
    /// By frame, the source of its C# name.
    sources: Vec<Option<NameSource<'m>>>,
    /// The name at hand.
    text: String,
}

/// The source of a C# name.
#[derive(Clone, Copy)]
enum NameSource<'m> {
    Method(Code<'m>),
    /// The name itself, which is a type's.
    Type,
}

impl<'m> NamedFrames<'m> {
    fn set(&mut self, name: &dyn fmt::Display) {
        self.text.clear();
        if !bounds::push_name(&mut self.text, name) {
            self.cut = self.cut.saturating_add(1);
        }
    }

    /// Returns the frame of a string other than a method.
    pub(super) fn intern(&mut self, name: &dyn fmt::Display) -> FrameId {
        self.set(name);
        self.frames.intern_as(&self.text, FrameInfo::PSEUDO)
    }

    /// The frame of code without a name.
    pub(super) fn intern_unresolved(&mut self, code: &Code<'m>, module: &str) -> FrameId {
        self.set(&format_args!("{module}!?"));
        self.frames.intern_as(&self.text, FrameInfo::of_code(code, module))
    }

    /// The frame of a type.
    pub(super) fn intern_type(&mut self, name: &dyn fmt::Display) -> FrameId {
        let frame = self.intern(name);
        self.keep(frame, NameSource::Type);
        frame
    }

    fn set_code(&mut self, code: &Code<'m>) {
        self.set(code);
        remove_type_addresses(&mut self.text);
    }

    pub(super) fn intern_code(&mut self, code: &Code<'m>) -> FrameId {
        self.set_code(code);
        let frame = self.frames.intern_as(&self.text, FrameInfo::of_code(code, code.module()));
        self.keep(frame, NameSource::Method(*code));
        frame
    }

    pub(super) fn intern_line(&mut self, code: &Code<'m>, line: SourceLine<'_>) -> FrameId {
        self.set_code(code);
        let frame = self.frames.intern_line_as(&self.text, line, FrameInfo::of_code(code, code.module()));
        self.keep(frame, NameSource::Method(*code));
        frame
    }

    /// Returns the role of a frame in the scheduling of tasks.
    pub(super) fn scheduler_frame(&self, frame: FrameId) -> SchedulerFrame {
        let (module, method) = self.frames.full_parts(frame);
        SchedulerFrame::of(module, method)
    }

    /// Returns the role of a frame in the execution of `async` methods.
    pub(super) fn await_frame(&self, frame: FrameId) -> AwaitFrame {
        let (module, method) = self.frames.full_parts(frame);
        AwaitFrame::of(module, method)
    }

    /// The name of a method without module and line, as the runtime writes it.
    pub(super) fn full_method(&self, frame: FrameId) -> &str {
        self.frames.full_parts(frame).1
    }

    fn keep(&mut self, frame: FrameId, source: NameSource<'m>) {
        let index = frame.0 as usize;
        if self.sources.len() <= index {
            self.sources.resize(index.saturating_add(1), None);
        }
        if let Some(place) = self.sources.get_mut(index) {
            place.get_or_insert(source);
        }
    }

    /// Returns true if `matches` holds for a name of a frame: the runtime's or a C# name.
    pub(super) fn has_name(&self, frame: FrameId, matches: impl Fn(&str) -> bool) -> bool {
        matches(self.frames.name(frame))
            || [Detail::Short, Detail::Qualified]
                .into_iter()
                .any(|detail| self.csharp(frame, detail).is_some_and(|name| matches(&name.whole())))
    }

    /// Marks exactly the code with a name that matches a pattern as the user's; without patterns the code's
    /// own facts decide.
    pub(super) fn set_user_code(&mut self, patterns: &[Pattern]) {
        if patterns.is_empty() {
            return;
        }
        for frame in self.frames.ids() {
            let is_code = self.frames.kind(frame) != FrameKind::Pseudo;
            let matches = |name: &str| patterns.iter().any(|pattern| pattern.matches(name));
            let is_user_code = is_code && self.has_name(frame, matches);
            self.frames.set_user_code(frame, is_user_code);
        }
    }

    /// Returns the C# name of a frame, if any.
    fn csharp(&self, frame: FrameId, detail: Detail) -> Option<CSharpFrame<'_>> {
        let name = self.frames.name(frame);
        let (text, type_at) = match (self.sources.get(frame.0 as usize)?.as_ref()?, detail) {
            (NameSource::Method(code), _) => csharp_name(code, detail)?,
            (NameSource::Type, Detail::Short) => (type_name(name)?, 0),
            (NameSource::Type, Detail::Qualified) => return None,
        };
        let line = name.strip_prefix(self.frames.method(frame)).unwrap_or_default();
        Some(CSharpFrame { text, type_at, line })
    }

    /// Returns the frames with C# names. Methods that would have the same name have longer ones, and if that
    /// does not help, the runtime's.
    pub(super) fn into_csharp(mut self) -> (Frames, u64) {
        let mut names: Vec<_> = self.frames.ids().map(|frame| self.csharp(frame, Detail::Short)).collect();
        for detail in [Some(Detail::Qualified), None] {
            for frame in ambiguous(&self.frames, &names) {
                if let Some(name) = names.get_mut(frame.0 as usize) {
                    *name = detail.and_then(|detail| self.csharp(frame, detail));
                }
            }
        }
        let name = |name: CSharpFrame<'_>| CSharpText { text: name.whole().into(), type_at: name.type_at };
        let texts = self.frames.ids().zip(names).map(|(frame, csharp)| {
            csharp.map(name).or_else(|| Some(CSharpText { text: self.frames.file_name(frame)?, type_at: 0 }))
        });
        let texts = texts.collect();
        self.frames.set_csharp_names(texts);
        (self.frames, self.cut)
    }
}

/// Returns the C# name of a method, after its module, and the byte at which the type begins.
pub(super) fn csharp_name(code: &Code<'_>, detail: Detail) -> Option<(String, usize)> {
    let name = code.runtime_name()?.csharp(detail)?;
    let module = if code.module().is_empty() { "?" } else { code.module() };
    let mut text = String::new();
    let is_whole = bounds::push_name(&mut text, format_args!("{module}!{}", name.text));
    is_whole.then_some((text, module.len() + 1 + name.namespace_len))
}

/// The mark of a type in a signature that only the running program knows; its address follows.
const TYPE_ADDRESS: &str = "pMT: ";

/// Removes the addresses of types from a method's name: `pMT: 0x7fd54bf4fe30<int32>` becomes `pMT<int32>`.
/// Stubs of reflection have such parameters, and would have another name in each process.
fn remove_type_addresses(name: &mut String) {
    if !name.contains(TYPE_ADDRESS) {
        return;
    }
    let mut parts = name.split(TYPE_ADDRESS);
    let mut short = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        short.push_str(TYPE_ADDRESS.trim_end_matches([':', ' ']));
        short.push_str(part.trim_start_matches(|c: char| c.is_ascii_alphanumeric()));
    }
    *name = short;
}

/// The C# name of a frame.
struct CSharpFrame<'f> {
    text: String,
    type_at: usize,
    /// The source line, as it follows the name of the method.
    line: &'f str,
}

impl CSharpFrame<'_> {
    fn whole(&self) -> Cow<'_, str> {
        if self.line.is_empty() {
            Cow::Borrowed(&self.text)
        } else {
            Cow::Owned(format!("{}{}", self.text, self.line))
        }
    }
}

/// Returns the frames with names that other methods share.
fn ambiguous(frames: &Frames, names: &[Option<CSharpFrame<'_>>]) -> Vec<FrameId> {
    let shown = || frames.ids().zip(names).filter_map(|(frame, name)| Some((frame, name.as_ref()?)));
    // By name, the method; `None` once there are two.
    let mut methods: HashMap<&str, Option<&str>> = HashMap::new();
    for (frame, name) in shown() {
        let method = frames.method(frame);
        let known = methods.entry(&name.text).or_insert(Some(method));
        if *known != Some(method) {
            *known = None;
        }
    }
    let is_ambiguous = |name: &CSharpFrame<'_>| methods.get(&*name.text) == Some(&None);
    shown().filter(|(_, name)| is_ambiguous(name)).map(|(frame, _)| frame).collect()
}
