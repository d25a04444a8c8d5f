//! Modules: the files that contain methods.

use core::fmt;

use alloc::vec::Vec;

use hashbrown::HashMap;
use uuid::Uuid;

use crate::code::string_table::{StringId, StringTable};
use crate::view;

/// A module as it is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    id: u64,
    /// `None` while only methods have named the module.
    details: Option<Details>,
}

/// The properties of a module that its own events state.
#[derive(Debug, Clone, Copy)]
struct Details {
    il_path: StringId,
    native_path: StringId,
    pdb_signature: Uuid,
    pdb_age: u32,
    pdb_path: StringId,
}

/// The modules of a process. An id that is used again gets a new entry.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    entries: Vec<Entry>,
    /// By id, the index of its newest entry.
    indexes: HashMap<u64, u32>,
}

impl Modules {
    /// Returns the index of the module that has this id now; it is added if it is new.
    pub(crate) fn index_of(&mut self, id: u64) -> u32 {
        match self.indexes.get(&id) {
            Some(index) => *index,
            None => self.insert(Entry { id, details: None }),
        }
    }

    fn insert(&mut self, entry: Entry) -> u32 {
        debug_assert!(
            u32::try_from(self.entries.len()).is_ok(),
            "modules fill more memory than a code map may"
        );
        let index = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push(entry);
        self.indexes.insert(entry.id, index);
        index
    }

    /// Adds the record of an event about a module.
    pub(crate) fn add(&mut self, texts: &mut StringTable, module: &view::Module<'_>) {
        let details = Details {
            il_path: texts.add_utf16(module.module_il_path),
            native_path: texts.add_utf16(module.module_native_path),
            pdb_signature: module.managed_pdb_signature.unwrap_or_default(),
            pdb_age: module.managed_pdb_age.unwrap_or_default(),
            pdb_path: module.managed_pdb_build_path.map_or(StringId::EMPTY, |path| texts.add_utf16(path)),
        };
        let index = self.index_of(module.module_id);
        let entry = usize::try_from(index).ok().and_then(|index| self.entries.get_mut(index));
        match entry {
            Some(entry) if entry.details.is_none_or(|before| before.il_path == details.il_path) => {
                entry.details = Some(details);
            }
            _ => {
                self.insert(Entry { id: module.module_id, details: Some(details) });
            }
        }
    }

    pub(crate) fn get<'m>(&'m self, texts: &'m StringTable, index: u32) -> Option<Module<'m>> {
        let entry = self.entries.get(usize::try_from(index).ok()?)?;
        Some(Module { texts, id: entry.id, details: entry.details? })
    }

    /// The modules that the recording names.
    pub(crate) fn all<'m>(&'m self, texts: &'m StringTable) -> impl Iterator<Item = Module<'m>> {
        let module = |entry: &Entry| Some(Module { texts, id: entry.id, details: entry.details? });
        self.entries.iter().filter_map(module)
    }

    /// Returns the path of a module; empty if it is not known.
    pub(crate) fn path(&self, index: u32) -> StringId {
        let entry = usize::try_from(index).ok().and_then(|index| self.entries.get(index));
        entry.and_then(|entry| entry.details).map_or(StringId::EMPTY, |details| details.il_path)
    }

    /// Returns the number of bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        let indexes = self.indexes.capacity().saturating_mul(size_of::<(u64, u32)>().saturating_add(1));
        self.entries.capacity().saturating_mul(size_of::<Entry>()).saturating_add(indexes)
    }
}

/// A module of a process.
#[derive(Clone, Copy)]
pub struct Module<'m> {
    texts: &'m StringTable,
    id: u64,
    details: Details,
}

impl<'m> Module<'m> {
    /// Returns the runtime's id of the module.
    pub const fn id(&self) -> u64 {
        self.id
    }
    /// Returns the name of the module: that of its file, without `.dll` or `.exe`.
    pub fn name(&self) -> &'m str {
        file_name(self.path())
    }
    /// Returns the path of the file, or the name that a module in memory was given.
    pub fn path(&self) -> &'m str {
        self.texts.get(self.details.il_path)
    }
    /// Returns the path of the precompiled code, if it is in another file; otherwise an empty string.
    pub fn native_path(&self) -> &'m str {
        self.texts.get(self.details.native_path)
    }
    /// Returns the signature and the age of the PDB; the signature is nil if it was not recorded.
    pub const fn pdb(&self) -> (Uuid, u32) {
        (self.details.pdb_signature, self.details.pdb_age)
    }
    /// Returns the path that the PDB had when the module was built.
    pub fn pdb_path(&self) -> &'m str {
        self.texts.get(self.details.pdb_path)
    }
}

impl fmt::Debug for Module<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({:#x} {:?})", self.id, self.path())
    }
}

/// Returns the last part of a path of any system, without `.dll` or `.exe`.
pub(crate) fn file_name(path: &str) -> &str {
    // Bytes, because this runs for every address without a symbol; the separators are ASCII.
    let name_at = path.bytes().rposition(|byte| matches!(byte, b'/' | b'\\'));
    let name = name_at.and_then(|at| path.get(at.saturating_add(1)..)).unwrap_or(path);
    match name.len().checked_sub(4).and_then(|stem| name.split_at_checked(stem)) {
        Some((stem, ending))
            if ending.eq_ignore_ascii_case(".dll") || ending.eq_ignore_ascii_case(".exe") =>
        {
            stem
        }
        _ => name,
    }
}

#[test]
fn modules_are_called_as_their_files() {
    for (path, name) in [
        ("/usr/share/dotnet/System.Private.CoreLib.dll", "System.Private.CoreLib"),
        (r"C:\app\App.EXE", "App"),
        ("/lib/libc.so.6", "libc.so.6"),
        ("vmlinux", "vmlinux"),
        (".dll", ""),
        ("", ""),
    ] {
        assert_eq!(file_name(path), name);
    }
}
