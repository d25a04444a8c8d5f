//! The runtime in a process: its build, and where it keeps its data.
//!
//! # Source
//! dotnet/runtime `src/coreclr/inc/daccess.h` (`g_dacTable`), `src/coreclr/debug/runtimeinfo/runtimeinfo.h`.

pub(crate) mod elf_image;
pub(crate) mod layout;
pub(crate) mod module;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use crate::aot::{self, NativeAot, Source};
use crate::code::map::CodeMap;
use crate::contracts::{self, Contracts, ContractsError};
use crate::error::Error;
use crate::heap::utf16;
use crate::memory::address::{Address, TypeHandle};
use crate::memory::mapping::MappedFile;
use crate::memory::{Memory, MemoryResult, Missing, offset};
use crate::processor::{Machine, Processor};
use crate::runtime::elf_image::ElfImage;
use crate::runtime::layout::{Layout, SlotForm, described};
use crate::threads::thread::{self, Thread};
use crate::unwind::native::{NativeImage, NativeImages};

/// Maximum number of files to read headers of.
const MAX_FILES: usize = 4096;
/// Maximum number of frames to keep between the innermost and the outermost ones, over all walks of a
/// runtime.
const MAX_DEEP_FRAMES: u32 = 4_000_000;
/// Maximum number of characters of a string to read.
const MAX_CHARACTERS: u32 = 1 << 16;
/// Maximum number of bytes of the runtime's data to search for its version.
const MAX_DATA_SIZE: u64 = 1 << 20;
/// The number of times that the checks are repeated: a running process can start a thread between two reads.
const ATTEMPTS: usize = 3;

/// The runtime of a process. A [`Dump`](crate::Dump) reads its data.
///
/// ```no_run
/// use clr_dump::{CoreFile, Runtime};
///
/// let core = CoreFile::open(std::fs::File::open("core")?)?;
/// let runtime = Runtime::find(&core, core.files())?;
/// println!(".NET {}: {}", runtime.version(), runtime.path());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Runtime {
    version: String,
    path: String,
    build_id: String,
    base: Address,
    is_measured: bool,
    is_described: bool,
    newer_contracts: Vec<String>,
    pub(crate) layout: Layout,
    /// The addresses of global variables: the entries of `g_dacTable`.
    slots: Vec<u64>,
    /// The parts that only programs have that were compiled ahead of time.
    native_aot: Option<NativeAot>,
    code: CodeMap,
    native: NativeImages,
    /// Frames of deep stacks that may still be walked.
    pub(crate) deep_frames_left: AtomicU32,
}

/// The facts needed to read a runtime.
struct KnownBuild {
    version: String,
    layout: Layout,
    /// The address of `g_dacTable`, and its number of entries; `None` if only the description is used.
    table: Option<(u64, usize)>,
    /// True if the facts were measured on this build, and not only on its version.
    is_measured: bool,
}

impl Runtime {
    /// Finds the runtime among the mapped files of a process, and checks its structures.
    ///
    /// # Errors
    /// [`Error::NoRuntime`], [`Error::UnsupportedMachine`], [`Error::UnknownRuntime`],
    /// [`Error::WrongLayout`], or if memory is missing.
    pub fn find(memory: &dyn Memory, files: &[MappedFile]) -> Result<Self, Error> {
        let (mut unknown, mut native, mut unreadable, mut other) = (None, None, None, None);
        for file in files.iter().filter(|file| file.file_offset == 0).take(MAX_FILES) {
            let Ok(Some(image)) = ElfImage::read(memory, file.start.get()) else { continue };
            let processor = match processor(&image) {
                Ok(processor) => processor,
                Err(error) => {
                    other = Some(error);
                    continue;
                }
            };
            let id = image.build_id.as_deref().unwrap_or_default();
            let contracts = contracts(memory, &image);
            if let Some(build) = layout::build(id).filter(|build| build.layout.processor == processor) {
                let table = offset(image.bias, build.dac_table);
                let version = build.version.to_owned();
                let (layout, table) = (*build.layout, Some((table, build.variables)));
                let known = KnownBuild { version, layout, table, is_measured: true };
                return Self::read(memory, files, file, &image, known, contracts.ok().flatten().as_ref());
            }
            let table = image.symbol(memory, "g_dacTable").ok().flatten();
            let contracts = match contracts {
                Ok(Some(contracts)) if is_of_native_aot(&contracts) => {
                    native.get_or_insert((file, image, Source::Contracts(Box::new(contracts))));
                    continue;
                }
                other => other,
            };
            if table.is_none() && !file.path.ends_with("/libcoreclr.so") {
                if let Ok(Some(header)) = image.symbol(memory, "DotNetRuntimeDebugHeader") {
                    native.get_or_insert((file, image, Source::Header(header.address)));
                }
                unreadable = unreadable.or(contracts.err());
                continue;
            }
            let version = version(memory, &image, &file.path);
            let layout = match &version {
                Some(version) => layout::of_version(version, processor),
                None => table.and_then(|table| layout::of_table(table.size, processor)),
            };
            if let (Some(layout), Some(table)) = (layout, table) {
                let version = version.unwrap_or_else(|| layout.major.to_string());
                let table = Some((table.address, layout.slots.entries(table.size)));
                let known = KnownBuild { version, layout: *layout, table, is_measured: false };
                return Self::read(memory, files, file, &image, known, contracts.ok().flatten().as_ref());
            }
            if let Some(contracts) = contracts? {
                return Self::read_described(memory, files, file, &image, &contracts);
            }
            unknown.get_or_insert((file.path.to_string(), hexadecimal(id)));
        }
        if unknown.is_none() && native.is_none() && unreadable.is_none() {
            native = unexported(memory, files);
        }
        match (unknown, native, unreadable) {
            (Some((path, build_id)), _, _) => Err(Error::UnknownRuntime { path, build_id }),
            (None, Some((file, image, source)), _) => {
                Self::read_native_aot(memory, files, file, &image, &source)
            }
            (None, None, Some(error)) => Err(error.into()),
            (None, None, None) => Err(other.unwrap_or(Error::NoRuntime)),
        }
    }

    /// Finds a runtime by its own description alone, without the facts of any version: for tests of them, and
    /// for what a description does not state.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_described(memory: &dyn Memory, files: &[MappedFile]) -> Result<Self, Error> {
        for file in files.iter().filter(|file| file.file_offset == 0).take(MAX_FILES) {
            let Ok(Some(image)) = ElfImage::read(memory, file.start.get()) else { continue };
            if let Some(contracts) = contracts(memory, &image)?
                && !is_of_native_aot(&contracts)
            {
                return Self::read_described(memory, files, file, &image, &contracts);
            }
        }
        Err(Error::NoRuntime)
    }

    fn read_described(
        memory: &dyn Memory,
        files: &[MappedFile],
        file: &MappedFile,
        image: &ElfImage,
        contracts: &Contracts,
    ) -> Result<Self, Error> {
        let processor = processor(image)?;
        let version = version(memory, image, &file.path)
            .or_else(|| contracts.text("RuntimeProductVersionString").map(str::to_owned))
            .unwrap_or_else(|| "of an unknown version".to_owned());
        if let Some(lacking) = described::lacking(contracts) {
            let what = format!("its description of its data lacks {lacking}").into();
            return Err(Error::WrongLayout { version, what });
        }
        let layout = Layout { processor, ..layout::DESCRIBED };
        let known = KnownBuild { version, layout, table: None, is_measured: false };
        Self::read(memory, files, file, image, known, Some(contracts))
    }

    /// Reads the runtime of a program that was compiled ahead of time.
    fn read_native_aot(
        memory: &dyn Memory,
        files: &[MappedFile],
        file: &MappedFile,
        image: &ElfImage,
        source: &Source,
    ) -> Result<Self, Error> {
        let described = aot::read(memory, source, file, files, processor(image)?)?;
        let stated = match source {
            Source::Contracts(contracts) => contracts.text("RuntimeProductVersionString").map(str::to_owned),
            Source::Header(_) => None,
        };
        let version = stated.or_else(|| described.native_aot.names(memory).and_then(|names| names.version()));
        let runtime = Self {
            version: version.unwrap_or_else(|| "of an unknown version".to_owned()),
            path: file.path.to_string(),
            build_id: hexadecimal(image.build_id.as_deref().unwrap_or_default()),
            base: file.start,
            is_measured: described.is_measured,
            is_described: matches!(source, Source::Contracts(_)),
            newer_contracts: Vec::new(),
            code: CodeMap::new(0, &described.layout),
            layout: described.layout,
            native: NativeImages::new(files),
            deep_frames_left: AtomicU32::new(MAX_DEEP_FRAMES),
            slots: described.slots,
            native_aot: Some(described.native_aot),
        };
        runtime.checked(memory)
    }

    fn read(
        memory: &dyn Memory,
        files: &[MappedFile],
        file: &MappedFile,
        image: &ElfImage,
        known: KnownBuild,
        contracts: Option<&Contracts>,
    ) -> Result<Self, Error> {
        let KnownBuild { version, mut layout, table, is_measured } = known;
        let mut slots = vec![0; layout.slots.count];
        if let Some((table, entries)) = table {
            let missing = Error::missing("the runtime's table of variables");
            let mut variables =
                self::slots(memory, layout.slots.form, table, entries, file.start.get()).map_err(missing)?;
            if layout.slots.leave_known(&mut variables) {
                slots = variables;
            } else if contracts.is_none() {
                let what = "the table of its variables has another length".into();
                return Err(Error::WrongLayout { version, what });
            }
        }
        let described = contracts.map(|contracts| (contracts, layout.describe(contracts)));
        let contracts = match described {
            Some((contracts, Ok(()))) => Some(contracts),
            // Only a damaged description of such a build differs.
            Some((_, Err(_))) if is_measured => None,
            Some((_, Err(what))) => return Err(Error::WrongLayout { version, what: what.into() }),
            None => None,
        };
        for (slot, address) in contracts.map(|of| described::variables(of, &layout.slots)).unwrap_or_default()
        {
            if let Some(place) = slots.get_mut(slot) {
                *place = address.get();
            }
        }
        let root = slots.get(layout.slots.range_map).copied().unwrap_or_default();
        let runtime = Self {
            version,
            path: file.path.to_string(),
            build_id: hexadecimal(image.build_id.as_deref().unwrap_or_default()),
            base: file.start,
            is_measured,
            is_described: contracts.is_some(),
            newer_contracts: contracts.map(described::newer).unwrap_or_default(),
            code: CodeMap::new(root, &layout),
            layout,
            native: NativeImages::new(files),
            deep_frames_left: AtomicU32::new(MAX_DEEP_FRAMES),
            slots,
            native_aot: None,
        };
        runtime.checked(memory)
    }

    /// Fails if the layout is wrong.
    fn checked(self, memory: &dyn Memory) -> Result<Self, Error> {
        let mut attempts = (0..ATTEMPTS).map(|_| self.check(memory));
        let result = attempts.find(Result::is_ok).unwrap_or_else(|| self.check(memory));
        match result {
            Ok(()) => Ok(self),
            Err(what) => Err(Error::WrongLayout { version: self.version, what: what.into() }),
        }
    }

    /// Checks facts that hold only if the layout is right.
    fn check(&self, memory: &dyn Memory) -> Result<(), &'static str> {
        let slots = &self.layout.slots;
        let free =
            self.variable(memory, slots.free_type).map_err(|_| "the type of free objects is missing")?;
        if memory.u32(offset(free, 4)) != Ok(24) {
            return Err("free objects do not have 24 bytes");
        }
        let heap_type = self.slot(slots.heap_type);
        if heap_type != 0 && !matches!(memory.u32(heap_type), Ok(1 | 2)) {
            return Err("the kind of heap is neither workstation nor server");
        }
        let (count, threads) = self.thread_list(memory).map_err(|_| "the list of threads cannot be read")?;
        let length = u32::try_from(threads.len()).unwrap_or(u32::MAX);
        match count {
            // Threads begin and end while the list of a running process is read.
            Some(count) if count.abs_diff(length) > (count / 8).max(1) => {
                Err("the number of threads is not the length of their list")
            }
            None if threads.is_empty() => Err("there are no threads"),
            _ => Ok(()),
        }
    }

    /// A runtime with some slots, for tests.
    #[cfg(test)]
    pub(crate) fn of_slots(layout: &'static Layout, slots: &[(usize, u64)]) -> Self {
        let mut all = vec![0; layout.slots.count];
        for (slot, address) in slots {
            all[*slot] = *address;
        }
        Self {
            version: layout.major.to_string(),
            path: String::new(),
            build_id: String::new(),
            base: Address::default(),
            is_measured: true,
            is_described: false,
            newer_contracts: Vec::new(),
            layout: *layout,
            code: CodeMap::new(0, layout),
            native: NativeImages::new(&[]),
            deep_frames_left: AtomicU32::new(MAX_DEEP_FRAMES),
            slots: all,
            native_aot: None,
        }
    }

    /// The version, as `9.0.1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The path of the file that has the runtime.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The build id of that file in hexadecimal.
    pub fn build_id(&self) -> &str {
        &self.build_id
    }

    /// The processor of the process.
    pub const fn processor(&self) -> Processor {
        self.layout.processor
    }

    /// The address of the runtime's image.
    pub const fn base(&self) -> Address {
        self.base
    }

    /// Returns true if the structures were measured with this very build. If not, the structures of its major
    /// version are used, and have passed the checks.
    pub const fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// Returns true if the runtime's own description of its data was used: what it states is taken from it,
    /// and the rest from the facts of its version.
    pub const fn is_described(&self) -> bool {
        self.is_described
    }

    /// The data contracts of the runtime in versions that are newer than the known ones, as
    /// `contract Thread 3, read as 1`: they are read as long as their fields are there.
    pub fn newer_contracts(&self) -> &[String] {
        &self.newer_contracts
    }

    /// Returns true if the program was compiled ahead of time (NativeAOT). Its runtime does not describe
    /// fields, static fields and monitors.
    pub const fn is_native_aot(&self) -> bool {
        self.native_aot.is_some()
    }

    pub(crate) const fn native_aot(&self) -> Option<&NativeAot> {
        self.native_aot.as_ref()
    }

    /// The map of managed code. It is empty if the program was compiled ahead of time.
    pub const fn code(&self) -> &CodeMap {
        &self.code
    }

    /// Returns the program or library that contains an address of native code.
    pub(crate) fn native_image(&self, memory: &dyn Memory, address: Address) -> Option<Arc<NativeImage>> {
        self.native.at(memory, address)
    }

    pub(crate) const fn native(&self) -> &NativeImages {
        &self.native
    }

    /// Returns the managed threads.
    ///
    /// # Errors
    /// If the memory lacks a part of the list.
    pub(crate) fn threads(&self, memory: &dyn Memory) -> MemoryResult<Vec<Thread>> {
        self.thread_list(memory).map(|(_, threads)| threads)
    }

    fn thread_list(&self, memory: &dyn Memory) -> MemoryResult<(Option<u32>, Vec<Thread>)> {
        let store = self.variable(memory, self.layout.slots.thread_store)?;
        thread::list(memory, &self.layout, store)
    }

    /// Returns the managed object of a thread; `None` if the thread lacks one.
    ///
    /// # Errors
    /// If the memory lacks the way to it.
    pub(crate) fn thread_object(
        &self,
        memory: &dyn Memory,
        thread: &Thread,
    ) -> MemoryResult<Option<Address>> {
        let Some(handle) = self.layout.thread.object_handle else { return Ok(None) };
        let handle = memory.u64(thread.address.at(handle))?;
        if handle == 0 {
            return Ok(None);
        }
        memory.pointer(handle).map(|object| Some(object).filter(|object| !object.is_null()))
    }

    /// Returns the name that the program gave a thread; `None` if unnamed.
    ///
    /// # Errors
    /// If the memory lacks the thread's object: small cores do.
    pub(crate) fn thread_name(&self, memory: &dyn Memory, thread: &Thread) -> MemoryResult<Option<String>> {
        let Some(object) = self.thread_object(memory, thread)? else { return Ok(None) };
        match memory.pointer(object.at(24))? {
            name if name.is_null() => Ok(None),
            name => self.string(memory, name).map(Some),
        }
    }

    /// Reads a string object; an error if it is not one, or if its characters were removed.
    pub(crate) fn string(&self, memory: &dyn Memory, object: Address) -> MemoryResult<String> {
        let string_type = self.string_type(memory)?;
        if memory.object_type(object)? != string_type {
            return Err(Missing { address: object.get() });
        }
        let length = memory.u32(object.at(8))?.min(MAX_CHARACTERS);
        let bytes = usize::try_from(length).unwrap_or_default().saturating_mul(2);
        let bytes = memory.bytes(object.at(12), bytes)?;
        // A copy of a core dump that was stripped.
        if !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0) {
            return Err(Missing { address: object.at(12) });
        }
        Ok(utf16::decode(&bytes))
    }

    /// The MethodTable of `System.String`.
    pub(crate) fn string_type(&self, memory: &dyn Memory) -> MemoryResult<TypeHandle> {
        match &self.native_aot {
            Some(program) => known_type(program.names(memory).and_then(|names| names.string_type())),
            None => self.variable(memory, self.layout.slots.string_type).map(TypeHandle::new),
        }
    }

    /// The MethodTable of `System.Exception`.
    pub(crate) fn exception_type(&self, memory: &dyn Memory) -> MemoryResult<TypeHandle> {
        match &self.native_aot {
            Some(program) => known_type(program.names(memory).and_then(|names| names.exception_type())),
            None => self.variable(memory, self.layout.slots.exception_type).map(TypeHandle::new),
        }
    }

    /// The address of a global variable; zero if missing.
    pub(crate) fn slot(&self, index: usize) -> u64 {
        self.slots.get(index).copied().unwrap_or_default()
    }

    /// The pointer in a global variable.
    pub(crate) fn variable(&self, memory: &dyn Memory, index: usize) -> MemoryResult<u64> {
        memory.u64(self.slot(index))
    }
}

fn known_type(type_handle: Option<TypeHandle>) -> MemoryResult<TypeHandle> {
    type_handle.ok_or(Missing { address: 0 })
}

/// The processor of an image. Stripped core dumps lacked its number, and were of x86-64.
fn processor(image: &ElfImage) -> Result<Processor, Error> {
    match image.machine {
        0 => Ok(Processor::X86_64),
        number => {
            let machine = Machine(number);
            Processor::of(machine).ok_or(Error::UnsupportedMachine(machine))
        }
    }
}

/// Reads the description that an image exports; `None` if it exports none.
fn contracts(memory: &dyn Memory, image: &ElfImage) -> Result<Option<Contracts>, ContractsError> {
    let Ok(Some(symbol)) = image.symbol(memory, contracts::SYMBOL) else { return Ok(None) };
    Contracts::read(memory, Address::new(symbol.address)).map(Some)
}

/// Finds a program or library that was compiled ahead of time and does not export its description.
fn unexported<'f>(
    memory: &dyn Memory,
    files: &'f [MappedFile],
) -> Option<(&'f MappedFile, ElfImage, Source)> {
    files.iter().filter(|file| file.file_offset == 0).take(MAX_FILES).find_map(|file| {
        let image = ElfImage::read(memory, file.start.get()).ok()??;
        let header = aot::find_header(memory, &image)?;
        Some((file, image, Source::Header(header)))
    })
}

/// Returns true for the description of a program that was compiled ahead of time.
fn is_of_native_aot(contracts: &Contracts) -> bool {
    contracts.text("RuntimeFlavor") == Some("NativeAot")
}

/// Reads the entries of `g_dacTable`.
fn slots(
    memory: &dyn Memory,
    form: SlotForm,
    table: u64,
    entries: usize,
    base: u64,
) -> MemoryResult<Vec<u64>> {
    let bytes = memory.bytes(table, entries.saturating_mul(form.size()))?;
    Ok(match form {
        SlotForm::Addresses => bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect(),
        SlotForm::Relative => {
            let address = |entry: &[u8; 4]| match u32::from_le_bytes(*entry) {
                0 => 0,
                relative => offset(base, relative.into()),
            };
            bytes.as_chunks().0.iter().map(address).collect()
        }
    })
}

/// Finds the version of an unknown runtime build: in its own information, or in the path, where a shared
/// runtime has a folder named by version.
fn version(memory: &dyn Memory, image: &ElfImage, path: &str) -> Option<String> {
    const SIGNATURE: &[u8] = b"DotNetRuntimeInfo\0";
    if let Some((start, size)) = image.data
        && let Some(version) = version_in_data(memory, start, size.min(MAX_DATA_SIZE))
    {
        return Some(version);
    }
    let info = image.symbol(memory, "DotNetRuntimeInfo").ok().flatten();
    if let Some(info) = info
        && let info = info.address
        && memory.bytes(info, SIGNATURE.len()).as_deref() == Ok(SIGNATURE)
        && memory.u32(offset(info, 20)).is_ok_and(|version| version >= 2)
    {
        let [major, minor, build] = [96, 100, 104].map(|at| memory.u32(offset(info, at)));
        // The last two digits of the build encode the year.
        return Some(format!("{}.{}.{}", major.ok()?, minor.ok()?, build.ok()? / 100));
    }
    let folder = path.rsplit('/').nth(1)?;
    folder.split('.').next()?.parse::<u32>().ok()?;
    Some(folder.to_owned())
}

/// Finds the version in a string of the runtime's data, `@(#)Version 9.0.725.31616 @Commit: …`. The last two
/// digits of the third number encode the year.
fn version_in_data(memory: &dyn Memory, start: u64, size: u64) -> Option<String> {
    const MARKER: &[u8] = b"@(#)Version ";
    const PAGE: u64 = 4096;
    const MAX_LENGTH: usize = 32;
    let mut data = Vec::new();
    let end = offset(start, size);
    let mut at = start;
    while at < end {
        let next = (at | (PAGE - 1)).saturating_add(1).min(end);
        let page = memory.bytes(at, usize::try_from(next.saturating_sub(at)).ok()?);
        // A core dump may lack a page.
        match page {
            Ok(page) => data.extend_from_slice(&page),
            Err(_) => data.clear(),
        }
        if let Some(place) = data.windows(MARKER.len()).position(|text| text == MARKER) {
            let text = data.get(place.saturating_add(MARKER.len())..)?;
            let text = text.get(..text.len().min(MAX_LENGTH))?;
            if let Some(length) = text.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.') {
                let text = String::from_utf8_lossy(text.get(..length)?).into_owned();
                let mut numbers = text.split('.').map(str::parse::<u32>);
                let (major, minor, third) =
                    (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
                return Some(format!("{major}.{minor}.{}", third / 100));
            }
        } else {
            let rest = data.len().saturating_sub(MARKER.len());
            data.drain(..rest);
        }
        at = next;
    }
    None
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::version_in_data;
    use crate::memory::tests::TestMemory;

    /// The version in a string that begins `before` bytes before the end of the first page.
    fn version(text: &str, before: usize, size: u64) -> Option<String> {
        let mut data = vec![b'x'; 8192];
        data[4096 - before..][..text.len()].copy_from_slice(text.as_bytes());
        let words: Vec<u64> = data.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let mut memory = TestMemory::default();
        memory.put_words(0x1_0000, &words);
        version_in_data(&memory, 0x1_0000, size)
    }

    #[test]
    fn the_version_is_found_wherever_it_is() {
        let text = "@(#)Version 9.0.725.31616 @Commit: 3c2";
        for before in [0, 1, 11, 12, 15, 30, 38, 4096] {
            assert_eq!(version(text, before, 8192).as_deref(), Some("9.0.7"), "{before}");
        }
        assert_eq!(version("@(#)Version 10.0.526.15411 @", 100, 8192).as_deref(), Some("10.0.5"));
        // The rest of the page is missing, and so is the version's end.
        assert_eq!(version(text, 0, 4096), None);
        assert_eq!(version("@(#)Version x9.0.725.31616", 100, 8192), None);
        // A part that the memory lacks precedes it.
        assert_eq!(version(text, 38, 1 << 20).as_deref(), Some("9.0.7"));
    }
}
