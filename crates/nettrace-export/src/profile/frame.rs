//! Frames: the names of the levels of stacks.

use clr_events::code::CodeOrigin;
use clr_events::csharp;
use hashbrown::{DefaultHashBuilder, HashMap};
use indexmap::IndexSet;

use crate::profile::frame_kind::{FrameInfo, FrameKind};
use crate::profile::lines::SourceLine;
use crate::profile::scheduler_frame::SchedulerFrame;

/// A frame; frames of the same name are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// The names of frames, each once: `Module!Namespace.Type.Method(parameters)`, or the name of a pseudo-frame.
/// If lines are known, each line of a method is a frame, with the line after the method:
/// `Module!Type.Method() (File.cs:12)`.
///
/// Names are in the [requested form](crate::Options::names); frames without a C# name have the runtime's.
///
/// ```
/// # use nettrace_export::{Measure, StackProfileBuilder, Unit, nettrace::RelativeTime};
/// # let mut builder = StackProfileBuilder::new(Measure::new("query time", "queries", Unit::Nanoseconds));
/// # for (method, weight) in [("Shop!Cart.Load()", 5_000_000), ("Shop!Cart.Pay()", 2_500_000)] {
/// #     builder.add_sample(42, 7, RelativeTime::START, weight, ["Shop!Program.Main()", method]);
/// # }
/// # let profile = builder.finish();
/// let frame = profile.frames.find("Shop!Cart.Pay()").ok_or("a frame")?;
/// assert_eq!(profile.frames.parts(frame), ("Shop", "Cart.Pay()"));
/// assert!(profile.frames.is_user_code(frame) && profile.frames.is_named(frame));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Default)]
pub struct Frames {
    /// As TraceEvent writes them.
    names: IndexSet<Box<str>, DefaultHashBuilder>,
    /// By frame.
    infos: Vec<FrameInfo>,
    /// By frame, if names in C# were requested.
    csharp: Vec<Option<CSharpText>>,
    lines: HashMap<FrameId, Line>,
    files: IndexSet<Box<str>, DefaultHashBuilder>,
}

/// The C# name of a frame.
#[derive(Debug)]
pub(crate) struct CSharpText {
    pub(crate) text: Box<str>,
    /// The byte at which the type begins, after module and namespace.
    pub(crate) type_at: usize,
}

/// The line of a frame.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// Bytes of the name that are the method's.
    method: usize,
    file: usize,
    number: u32,
}

impl Frames {
    /// Returns the frame of that name, which is added if it is new: with a module and a
    /// [kind](Self::kind) if the name has the form `Module!Method(parameters)` or `file!symbol`.
    pub fn intern(&mut self, name: &str) -> FrameId {
        match self.find(name) {
            Some(id) => id,
            None => self.intern_as(name, FrameInfo::of_text(name)),
        }
    }

    /// Returns the frame of that name, which is added with these facts if it is new.
    pub(crate) fn intern_as(&mut self, name: &str, info: FrameInfo) -> FrameId {
        let index = intern(&mut self.names, name);
        if index == self.infos.len() {
            self.infos.push(info);
        }
        frame_id(index)
    }

    /// The frame of that name, which is cut at a limit of bytes and then ends in `…`; or that of `(others)`
    /// if the name is new and `limit` frames exist.
    pub(crate) fn intern_within(&mut self, limit: usize, bytes: usize, name: &str) -> FrameId {
        let end = (0..=bytes.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
        let cut = end.filter(|end| *end < name.len()).and_then(|end| name.get(..end));
        let cut = cut.map(|kept| format!("{kept}…"));
        let name = cut.as_deref().unwrap_or(name);
        match self.find(name) {
            Some(id) => id,
            None => self.intern(if self.len() < limit { name } else { "(others)" }),
        }
    }

    /// Returns the frame of that name as TraceEvent writes it.
    pub fn find(&self, name: &str) -> Option<FrameId> {
        self.names.get_index_of(name).map(frame_id)
    }

    /// Adds a frame of other frames under its names.
    pub(crate) fn adopt(&mut self, others: &Self, frame: FrameId) -> FrameId {
        let id = self.intern_as(others.full_name(frame), others.info(frame));
        if let Some(CSharpText { text, type_at }) = others.csharp_text(frame) {
            let index = id.0 as usize;
            if self.csharp.len() <= index {
                self.csharp.resize_with(index.saturating_add(1), || None);
            }
            if let Some(place) = self.csharp.get_mut(index) {
                place.get_or_insert_with(|| CSharpText { text: text.clone(), type_at: *type_at });
            }
        }
        id
    }

    /// The frame of a line of a method, which is added if it is new.
    pub fn intern_line(&mut self, method: &str, source: SourceLine<'_>) -> FrameId {
        self.intern_line_as(method, source, FrameInfo::of_text(method))
    }

    /// The same with these facts.
    pub(crate) fn intern_line_as(
        &mut self,
        method: &str,
        source: SourceLine<'_>,
        info: FrameInfo,
    ) -> FrameId {
        let id = self.intern_as(&format!("{method} ({source})"), info);
        if !self.lines.contains_key(&id) {
            let file = intern(&mut self.files, source.file);
            self.lines.insert(id, Line { method: method.len(), file, number: source.line });
        }
        id
    }

    /// The line of a frame, if it is known.
    pub fn line(&self, id: FrameId) -> Option<SourceLine<'_>> {
        let line = self.lines.get(&id)?;
        Some(SourceLine { file: self.files.get_index(line.file)?, line: line.number })
    }

    /// The name without the line.
    pub fn method(&self, id: FrameId) -> &str {
        let (name, full) = (self.name(id), self.full_name(id));
        let line = self.lines.get(&id).and_then(|line| full.get(line.method..)).unwrap_or_default();
        name.strip_suffix(line).unwrap_or(name)
    }

    /// The whole name.
    pub fn name(&self, id: FrameId) -> &str {
        self.csharp_text(id).map_or_else(|| self.full_name(id), |csharp| &csharp.text)
    }

    /// The C# name without module and namespace; `None` if the frame lacks a C# name, or if such names were
    /// not requested.
    pub fn short_name(&self, id: FrameId) -> Option<&str> {
        let csharp = self.csharp_text(id)?;
        csharp.text.get(csharp.type_at..)
    }

    fn csharp_text(&self, id: FrameId) -> Option<&CSharpText> {
        self.csharp.get(id.0 as usize)?.as_ref()
    }

    /// The whole name as TraceEvent writes it, whatever form of names was requested.
    pub fn full_name(&self, id: FrameId) -> &str {
        self.names.get_index(id.0 as usize).map_or("", |name| name)
    }

    /// The same without the line.
    pub fn full_method(&self, id: FrameId) -> &str {
        let name = self.full_name(id);
        self.lines.get(&id).and_then(|line| name.get(..line.method)).unwrap_or(name)
    }

    /// The `async` method or iterator with the state machine that the frame runs, with its module and without
    /// parameters: `App!Program.Round` for ``App!Program+<Round>d__7.MoveNext()``. `None` for all other
    /// frames.
    pub fn state_machine_method(&self, id: FrameId) -> Option<String> {
        let (module, method) = self.full_parts(id);
        let name = csharp::async_method(method.strip_suffix(".MoveNext()")?)?;
        Some(if module.is_empty() { name } else { format!("{module}!{name}") })
    }

    /// Returns true if the frame belongs to the machinery of `await` and tasks and not to the program:
    /// builders of `async` methods, awaiters, continuations, the queue of the thread pool. Frames that wait
    /// for a task do not count.
    pub fn is_async_plumbing(&self, id: FrameId) -> bool {
        let (module, method) = self.full_parts(id);
        SchedulerFrame::is_async_plumbing(module, method)
    }

    fn info(&self, id: FrameId) -> FrameInfo {
        self.infos.get(id.0 as usize).copied().unwrap_or(FrameInfo::PSEUDO)
    }

    /// Returns the kind of a frame. Frames of one name are one, and have the kind of the first.
    pub fn kind(&self, id: FrameId) -> FrameKind {
        self.info(id).kind
    }

    /// Returns true if the frame is a method of the user's code: not of the framework's assemblies, nor
    /// native, or by [`Options::user_code`](crate::Options::user_code).
    pub fn is_user_code(&self, id: FrameId) -> bool {
        self.info(id).is_user_code
    }

    /// Sets whether a frame is user code.
    pub(crate) fn set_user_code(&mut self, id: FrameId, is_user_code: bool) {
        if let Some(info) = self.infos.get_mut(id.0 as usize) {
            info.is_user_code = is_user_code;
        }
    }

    /// Returns true if the frame is named. Unnamed code is written as `Module!?`, or `?!?`.
    pub fn is_named(&self, id: FrameId) -> bool {
        self.info(id).is_named
    }

    /// Returns true if neither the name nor the module or file of a frame is known.
    pub fn is_unknown(&self, id: FrameId) -> bool {
        let info = self.info(id);
        !info.is_named && self.full_name(id).get(..info.module) == Some("?")
    }

    /// Returns unnamed code in the form of its file: `[libcoreclr.so]`. `None` for other frames, and if the
    /// file is unknown.
    pub(crate) fn file_name(&self, id: FrameId) -> Option<Box<str>> {
        let info = self.info(id);
        let file = self.full_name(id).get(..info.module).filter(|file| *file != "?" && !file.is_empty())?;
        let name = if file.starts_with('[') { file.to_owned() } else { format!("[{file}]") };
        (!info.is_named).then(|| name.into())
    }

    /// Makes the native code of a single-file program the runtime's: the file of such a program contains the
    /// runtime, and all of it is unnamed. Programs that load the runtime, and programs without managed code,
    /// stay as they are.
    pub(crate) fn find_runtime_in_program(&mut self) {
        let module = |id| self.full_parts(id).0;
        let is_managed = self.ids().any(|id| self.kind(id).is_managed());
        let loads_runtime = self
            .ids()
            .any(|id| ["libcoreclr.so", "libcoreclr.dylib", "coreclr", "clr"].contains(&module(id)));
        if !is_managed || loads_runtime {
            return;
        }
        let is_program = |id: FrameId| {
            let info = self.info(id);
            info.kind == FrameKind::Code(CodeOrigin::Native)
                && !info.is_named
                && !module(id).contains(['[', '(', ':'])
                && !module(id).contains(".so")
                && !module(id).contains(".dylib")
        };
        let program: Vec<_> = self.ids().filter(|id| is_program(*id)).collect();
        for id in program {
            if let Some(info) = self.infos.get_mut(id.0 as usize) {
                info.kind = FrameKind::Code(CodeOrigin::Runtime);
            }
        }
    }

    /// Gives frames their C# names, in the order of their numbers.
    pub(crate) fn set_csharp_names(&mut self, names: Vec<Option<CSharpText>>) {
        self.csharp = names;
    }

    /// All frames, in the order of their numbers.
    pub(crate) fn ids(&self) -> impl Iterator<Item = FrameId> + use<> {
        (0..).map(FrameId).take(self.names.len())
    }

    /// The name in two parts: the module, empty for pseudo-frames, and the rest after the `!`.
    pub fn parts(&self, id: FrameId) -> (&str, &str) {
        self.split(id, self.name(id))
    }

    /// The [name without the line](Self::method) in the same parts.
    pub fn method_parts(&self, id: FrameId) -> (&str, &str) {
        self.split(id, self.method(id))
    }

    /// The [whole name without the line](Self::full_method) in the same parts.
    pub fn full_parts(&self, id: FrameId) -> (&str, &str) {
        self.split(id, self.full_method(id))
    }

    /// Splits a name of a frame after its module, with which each of its names begins.
    fn split<'n>(&self, id: FrameId, name: &'n str) -> (&'n str, &'n str) {
        let FrameInfo { module, is_named, .. } = self.info(id);
        // The name by the file.
        let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        if let Some(file) =
            [inner, Some(name)].into_iter().flatten().find(|file| !is_named && file.len() == module)
        {
            return (file, "?");
        }
        let parts = name.split_at_checked(module).filter(|_| module > 0);
        parts.and_then(|(module, rest)| Some((module, rest.strip_prefix('!')?))).unwrap_or(("", name))
    }

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns true if it is empty.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (FrameId, &str)> {
        self.ids().map(|id| (id, self.name(id)))
    }
}

/// Returns the index of a string, which is added if it is new.
fn intern(texts: &mut IndexSet<Box<str>, DefaultHashBuilder>, text: &str) -> usize {
    match texts.get_index_of(text) {
        Some(index) => index,
        None => texts.insert_full(text.into()).0,
    }
}

/// Frames are from stacks of a recording, which would exceed any memory before the number of frames
/// overflows.
fn frame_id(index: usize) -> FrameId {
    debug_assert!(u32::try_from(index).is_ok(), "more frames than numbers");
    FrameId(u32::try_from(index).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_frames_survive_a_full_table() {
        let mut frames = Frames::default();
        let first = frames.intern_within(2, 10, "first");
        let second = frames.intern_within(2, 10, "second");
        let others = frames.intern_within(2, 10, "third");
        assert_eq!(frames.name(others), "(others)");
        assert_eq!(frames.intern_within(2, 10, "fourth"), others);
        assert_eq!(
            [frames.intern_within(2, 10, "first"), frames.intern_within(2, 10, "second")],
            [first, second]
        );
    }

    #[test]
    fn equal_names_are_one_frame() {
        let mut frames = Frames::default();
        let ids: Vec<_> = (0..1000).map(|number| frames.intern(&format!("M!T.M{number}()"))).collect();
        assert_eq!(frames.intern("M!T.M7()"), ids[7]);
        assert_eq!(frames.len(), 1000);
        assert_eq!(frames.parts(ids[7]), ("M", "T.M7()"));
        for plain in ["CPU_TIME", "!x"] {
            let id = frames.intern(plain);
            assert_eq!(frames.parts(id), ("", plain));
        }
    }

    #[test]
    fn only_the_first_mark_of_code_ends_a_module() {
        let mut frames = Frames::default();
        let generic = frames.intern("M!T`1[System.__Canon].Add(!0)");
        assert_eq!(frames.parts(generic), ("M", "T`1[System.__Canon].Add(!0)"));
        // A request's text is not a module.
        let request = frames.intern_as("GET /what!?", FrameInfo::PSEUDO);
        assert_eq!((frames.parts(request), frames.is_named(request)), (("", "GET /what!?"), true));
        let of_file = frames.intern("libc.so.6!?");
        assert_eq!((frames.is_named(of_file), frames.is_unknown(of_file)), (false, false));
        let unknown = frames.intern("?!?");
        assert!(frames.is_unknown(unknown) && !frames.is_named(unknown));
    }

    #[test]
    fn a_single_file_program_contains_the_runtime() {
        let kind_of_web = |others: &[&str]| {
            let mut frames = Frames::default();
            let web = frames.intern_as(
                "web!?",
                FrameInfo {
                    kind: FrameKind::Code(CodeOrigin::Native),
                    is_named: false,
                    ..FrameInfo::of_text("web!?")
                },
            );
            for other in others {
                frames.intern(other);
            }
            frames.find_runtime_in_program();
            frames.kind(web)
        };
        assert_eq!(kind_of_web(&["App!P.Main()"]), FrameKind::Code(CodeOrigin::Runtime));
        assert_eq!(kind_of_web(&["App!P.Main()", "libcoreclr.so!?"]), FrameKind::Code(CodeOrigin::Native));
        assert_eq!(kind_of_web(&["libc.so.6!malloc"]), FrameKind::Code(CodeOrigin::Native));
    }

    #[test]
    fn code_without_a_name_is_named_by_its_file() {
        let mut frames = Frames::default();
        let [of_file, vdso, unknown, named] =
            ["libcoreclr.so!?", "[vdso]!?", "?!?", "libc.so.6!malloc"].map(|name| frames.intern(name));
        let texts = frames.ids().map(|id| Some(CSharpText { text: frames.file_name(id)?, type_at: 0 }));
        let texts = texts.collect();
        frames.set_csharp_names(texts);
        assert_eq!(
            [of_file, vdso, unknown, named].map(|id| frames.name(id)),
            ["[libcoreclr.so]", "[vdso]", "?!?", "libc.so.6!malloc"]
        );
        // The parts are unchanged.
        assert_eq!(frames.parts(of_file), ("libcoreclr.so", "?"));
        assert_eq!(frames.parts(vdso), ("[vdso]", "?"));
        assert_eq!(frames.full_name(of_file), "libcoreclr.so!?");
    }

    #[test]
    fn async_plumbing_is_neither_work_nor_wait() {
        let mut frames = Frames::default();
        let core = "System.Private.CoreLib!System.";
        for (is_plumbing, name) in [
            (true, "Runtime.CompilerServices.AsyncMethodBuilderCore.Start(!!0&)"),
            (
                true,
                "Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1[A,B].MoveNext(class C)",
            ),
            (true, "Threading.ExecutionContext.RunInternal(class A)"),
            (true, "Threading.Tasks.Task.RunContinuations(class A)"),
            (true, "Threading.ThreadPoolWorkQueue.Dispatch()"),
            (false, "Threading.Tasks.Task.InternalWaitCore(int32)"),
            (false, "Threading.Tasks.Task.Wait()"),
            (false, "Threading.Monitor.Wait(class A)"),
            (false, "Diagnostics.Tracing.EventSource.WriteEvent(int32)"),
            (false, "String.Concat(class A)"),
        ] {
            let id = frames.intern(&format!("{core}{name}"));
            assert_eq!(frames.is_async_plumbing(id), is_plumbing, "{name}");
        }
        let own = frames.intern("App!System.Threading.ThreadPool.Mine()");
        assert!(!frames.is_async_plumbing(own));
    }

    #[test]
    fn lines_of_a_method_are_frames() {
        let mut frames = Frames::default();
        let method = "M!T.M()";
        let at = |line| SourceLine { file: r"C:\src\M.cs", line };
        let [plain, first, second, again] = [
            frames.intern(method),
            frames.intern_line(method, at(7)),
            frames.intern_line(method, at(8)),
            frames.intern_line(method, at(7)),
        ];
        assert_eq!((first, frames.len()), (again, 3));
        assert_eq!(frames.name(second), "M!T.M() (M.cs:8)");
        assert!([plain, first, second].iter().all(|id| frames.method(*id) == method));
        assert_eq!((frames.line(plain), frames.line(second)), (None, Some(at(8))));
    }
}
