//! The static fields of types.

use hashbrown::HashSet;

use crate::memory::address::{Address, TypeHandle};
use crate::memory::offset;
use crate::statics::Statics;
use crate::statics::thread::ThreadStatics;
use crate::threads::thread::Thread;
use crate::types::field::{Field, StaticField, Storage, is_in_references};

/// Maximum number of types to read static fields of, and of these fields.
const MAX_TYPES: usize = 1 << 20;
const MAX_STATIC_FIELDS: usize = 1 << 20;
const CORE_LIBRARY: &str = "System.Private.CoreLib.dll";

impl Statics<'_> {
    /// Returns the static fields of the loaded types that modules define, of the loaded instances of generic
    /// types, and of `others`: types of objects. Those that each thread has for itself are among them for
    /// `threads` that have used their type.
    pub fn fields(
        self,
        others: impl IntoIterator<Item = TypeHandle>,
        threads: &[Thread],
    ) -> Vec<StaticField> {
        let threads: Vec<_> =
            threads.iter().filter_map(|thread| self.thread_statics(thread).ok().flatten()).collect();
        let mut seen = HashSet::new();
        let mut fields = Vec::new();
        for of in self.types_with_fields(others) {
            if seen.insert(of) {
                self.add_static_fields(of, &threads, &mut fields);
            }
            if fields.len() >= MAX_STATIC_FIELDS {
                break;
            }
        }
        fields
    }

    /// Returns the static fields of a type as [`fields`](Self::fields) does.
    pub fn fields_of(self, type_handle: TypeHandle, threads: &[Thread]) -> Vec<StaticField> {
        let threads: Vec<_> =
            threads.iter().filter_map(|thread| self.thread_statics(thread).ok().flatten()).collect();
        let mut fields = Vec::new();
        self.add_static_fields(type_handle, &threads, &mut fields);
        fields
    }

    /// Returns a static field of a type of System.Private.CoreLib.
    pub(crate) fn core_library_place(self, type_name: &str, field: &str) -> Option<StaticField> {
        let fields = self.core_library_fields(type_name, &[]);
        fields.into_iter().find(|place| place.field.name == field)
    }

    /// Returns the static fields of a type of System.Private.CoreLib; empty if it is not loaded.
    pub(crate) fn core_library_fields(self, type_name: &str, threads: &[Thread]) -> Vec<StaticField> {
        let types = self.dump.types();
        let find = || {
            // Its module need not have been found before, by code or by an object.
            let own = self.runtime().exception_type(self.memory()).ok().and_then(|of| types.module(of));
            let named = || types.modules().into_iter().find(|module| module.file_name() == CORE_LIBRARY);
            let core = own.filter(|module| module.file_name() == CORE_LIBRARY).or_else(named)?;
            let metadata = types.metadata(&core)?;
            let is_type = |row: &u32| metadata.type_name(*row).is_ok_and(|name| name == type_name);
            let row = (1..=metadata.type_count()).find(is_type)?;
            types.defined_type(core.address, row)
        };
        find().map(|of| self.fields_of(of, threads)).unwrap_or_default()
    }

    /// Returns the reference in a static field of a type of System.Private.CoreLib.
    pub(crate) fn core_library_field(self, type_name: &str, field: &str) -> Option<(Address, TypeHandle)> {
        self.dump.heap().reference_at(self.core_library_place(type_name, field)?.address)
    }

    /// Returns the types that modules define or have instances of, and others.
    fn types_with_fields(self, others: impl IntoIterator<Item = TypeHandle>) -> Vec<TypeHandle> {
        let mut types: Vec<TypeHandle> = others.into_iter().take(MAX_TYPES).collect();
        // Modules with JIT-compiled code only are found through their types.
        for of in &types {
            self.dump.types().module(*of);
        }
        let mut modules = HashSet::new();
        loop {
            let known = self.dump.types().modules();
            let mut new = known.iter().filter(|module| modules.insert(module.address)).peekable();
            if new.peek().is_none() {
                return types;
            }
            for module in new {
                let count = self.dump.types().metadata(module).map_or(0, |metadata| metadata.type_count());
                let left = MAX_TYPES.saturating_sub(types.len());
                let defined =
                    (1..=count).filter_map(|row| self.dump.types().defined_type(module.address, row));
                types.extend(defined.take(left));
                let left = MAX_TYPES.saturating_sub(types.len());
                let instances = self.instances(module.address, left).unwrap_or_default();
                for of in &instances {
                    self.dump.types().module(*of);
                }
                types.extend(instances);
            }
        }
    }

    fn add_static_fields(
        self,
        type_handle: TypeHandle,
        threads: &[ThreadStatics],
        fields: &mut Vec<StaticField>,
    ) {
        let Ok(Some(places)) = self.places(type_handle) else { return };
        let mut of_threads = Vec::new();
        for field in self.dump.types().own_fields(type_handle).unwrap_or_default() {
            match field.storage {
                Storage::Static => {}
                Storage::Thread => {
                    of_threads.push(field);
                    continue;
                }
                Storage::Object | Storage::Elsewhere => continue,
            }
            let base = if is_in_references(&field) { places.references } else { places.others };
            if base != 0 {
                let address = Address::new(offset(base, field.offset.into()));
                fields.push(StaticField { field, type_handle, address, thread: None });
            }
        }
        if !of_threads.is_empty() {
            self.add_fields_of_threads(type_handle, &of_threads, threads, fields);
        }
    }

    fn add_fields_of_threads(
        self,
        type_handle: TypeHandle,
        of_type: &[Field],
        threads: &[ThreadStatics],
        fields: &mut Vec<StaticField>,
    ) {
        for thread in threads {
            let Ok(places) = self.thread_places(thread, type_handle) else { continue };
            for field in of_type {
                let place = if is_in_references(field) { places.references } else { places.others };
                let Some(address) = place.and_then(|place| place.field(field.offset)) else { continue };
                if fields.len() >= MAX_STATIC_FIELDS {
                    return;
                }
                let (address, thread) = (Address::new(address), Some(thread.os_id));
                fields.push(StaticField { field: field.clone(), type_handle, address, thread });
            }
        }
    }
}
