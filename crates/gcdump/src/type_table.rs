//! The types of a dump.

use std::sync::Arc;

use clr_events::enums::TypeFlags;
use hashbrown::HashMap;

use crate::definitions::Definitions;
use crate::graph::HeapType;
use crate::type_name::{RepeatBudget, csharp_name, namespace, size_class, tool_name, type_arguments};

/// A type as described by the runtime.
#[derive(Debug)]
pub(crate) struct TypeDescription {
    /// The process that has the type.
    pub(crate) process_id: Option<u64>,
    pub(crate) id: u64,
    pub(crate) module_id: u64,
    pub(crate) token: u32,
    pub(crate) flags: TypeFlags,
    pub(crate) name: String,
    /// The name with its enclosing types; `None` if the source does not state it.
    pub(crate) whole_name: Option<String>,
    pub(crate) parameters: Vec<u64>,
}

/// Types by name and module, and by the runtime's numbers.
#[derive(Debug)]
pub(crate) struct TypeTable {
    types: Vec<HeapType>,
    /// The numbers of modules by path.
    modules: HashMap<Arc<str>, u32>,
    /// By the module's number and the name.
    by_name: HashMap<(Option<u32>, Arc<str>), u32>,
    /// By the name with a size class.
    sized: HashMap<String, u32>,
    by_id: HashMap<u64, u32>,
    unknown: u64,
}

impl TypeTable {
    /// Builds a table of the described types. If a number is described several times, the last description
    /// counts.
    pub(crate) fn new(
        descriptions: &[TypeDescription],
        modules: &HashMap<(Option<u64>, u64), Arc<str>>,
        definitions: &Definitions,
    ) -> Self {
        let mut table = Self {
            types: Vec::new(),
            modules: HashMap::new(),
            by_name: HashMap::new(),
            sized: HashMap::new(),
            by_id: HashMap::new(),
            unknown: 0,
        };
        table.types.push(HeapType {
            name: "UNDEFINED".into(),
            csharp: "UNDEFINED".to_owned(),
            namespace: String::new(),
            module: None,
            first_size: Some(0),
            is_known: true,
        });
        let whole_names = whole_names(descriptions, definitions);
        for description in descriptions {
            let name = description.tool_name();
            let path = modules.get(&(description.process_id, description.module_id)).cloned();
            let module = path.unwrap_or_else(|| format!("Module(0x{:x})", description.module_id).into());
            let runtime = whole_names.get(&description.id).unwrap_or(&description.name);
            let number = table.intern(&name, Some(&module), || {
                let csharp = if runtime.is_empty() { name.clone() } else { csharp_name(runtime) };
                (csharp, namespace(runtime).to_owned())
            });
            table.by_id.insert(description.id, number);
        }
        table
    }

    /// Returns the name of the type with the runtime's number.
    pub(crate) fn name_of(&self, id: u64) -> Arc<str> {
        let known = self.by_id.get(&id).and_then(|number| self.types.get(*number as usize));
        known.map_or_else(|| format!("Type(0x{id:x})").into(), |known| Arc::clone(&known.name))
    }

    /// Returns the numbers of an object's type, without and with its size class. Objects have to be passed in
    /// order.
    pub(crate) fn of_object(&mut self, id: u64, size: u64) -> (u32, u32) {
        let plain = if let Some(number) = self.by_id.get(&id) {
            *number
        } else {
            let name = format!("UNKNOWN 0x{id:x}");
            let number = self.intern(&name, None, || (name.clone(), String::new()));
            if let Some(unknown) = self.types.get_mut(number as usize) {
                unknown.is_known = false;
            }
            self.unknown = self.unknown.saturating_add(1);
            self.by_id.insert(id, number);
            number
        };
        let in_file = size_class(size).map_or(plain, |class| self.with_class(plain, class));
        if let Some(of) = self.types.get_mut(in_file as usize) {
            of.first_size.get_or_insert(size);
        }
        (plain, in_file)
    }

    pub(crate) fn is_known(&self, number: u32) -> bool {
        self.types.get(number as usize).is_none_or(|of| of.is_known)
    }

    /// The number of types of objects that are not described.
    pub(crate) const fn unknown_count(&self) -> u64 {
        self.unknown
    }

    pub(crate) fn into_types(self) -> Vec<HeapType> {
        self.types
    }

    /// The type of large objects, which is found by name alone.
    fn with_class(&mut self, plain: u32, class: &str) -> u32 {
        let Some(of) = self.types.get(plain as usize) else { return plain };
        let name = format!("{}{class}", of.name);
        if let Some(number) = self.sized.get(&name) {
            return *number;
        }
        let names = (format!("{}{class}", of.csharp), of.namespace.clone());
        let (module, is_known) = (of.module.clone(), of.is_known);
        let number = self.intern(&name, module.as_ref(), || names);
        if let Some(sized) = self.types.get_mut(number as usize) {
            sized.is_known = is_known;
        }
        self.sized.insert(name, number);
        number
    }

    /// Returns the number of a type. `names` returns its C# name and namespace.
    fn intern(
        &mut self,
        name: &str,
        module: Option<&Arc<str>>,
        names: impl FnOnce() -> (String, String),
    ) -> u32 {
        let (module, module_number) = module.map(|path| self.intern_module(path)).unzip();
        let name: Arc<str> = name.into();
        *self.by_name.entry((module_number, Arc::clone(&name))).or_insert_with(|| {
            let (mut csharp, namespace) = names();
            csharp.shrink_to_fit();
            self.types.push(HeapType { name, csharp, namespace, module, first_size: None, is_known: true });
            u32::try_from(self.types.len()).unwrap_or(u32::MAX).saturating_sub(1)
        })
    }

    /// Returns the path of a module, shared by all equal ones, and its number.
    fn intern_module(&mut self, path: &Arc<str>) -> (Arc<str>, u32) {
        if let Some((path, number)) = self.modules.get_key_value(path) {
            return (Arc::clone(path), *number);
        }
        let number = u32::try_from(self.modules.len()).unwrap_or(u32::MAX);
        self.modules.insert(Arc::clone(path), number);
        (Arc::clone(path), number)
    }
}

impl TypeDescription {
    fn tool_name(&self) -> String {
        let name = match self.name.is_empty() {
            true if self.flags.contains(TypeFlags::ARRAY) => format!("ArrayType(0x{:x})", self.token),
            true => format!("Type(0x{:x})", self.token),
            false => tool_name(&self.name),
        };
        if self.flags.contains(TypeFlags::EXTERNALLY_IMPLEMENTED_COM_OBJECT) {
            format!("[RCW {name}]")
        } else {
            name
        }
    }
}

/// The names of nested types with their enclosing types, as defined by their modules; the runtime writes
/// these only for type arguments of other types. Also the names of arrays of them. Beyond a limit of repeated
/// bytes, arrays keep their short names.
fn whole_names(descriptions: &[TypeDescription], definitions: &Definitions) -> HashMap<u64, String> {
    let own: HashMap<u64, &str> = descriptions.iter().map(|of| (of.id, &*of.name)).collect();
    let mut whole: HashMap<u64, String> = HashMap::new();
    let mut budget = RepeatBudget::default();
    for of in descriptions {
        if let Some(name) = of.whole_name.as_ref().filter(|name| **name != of.name && budget.takes(name)) {
            whole.insert(of.id, name.clone());
        }
    }
    for of in descriptions.iter().filter(|of| !of.flags.contains(TypeFlags::ARRAY)) {
        if let Some(name) = definitions.whole_name(of.module_id, of.token, &of.name)
            && budget.takes(&name)
        {
            whole.insert(of.id, name);
        }
    }
    for description in descriptions {
        let arguments = type_arguments(&description.name);
        if arguments.len() != description.parameters.len() {
            continue;
        }
        for (argument, id) in arguments.into_iter().zip(&description.parameters) {
            let is_nested = own
                .get(id)
                .and_then(|own| argument.strip_suffix(own))
                .is_some_and(|around| around.ends_with('+'));
            if is_nested {
                whole.entry(*id).or_insert_with(|| argument.to_owned());
            }
        }
    }
    let arrays: Vec<_> = descriptions
        .iter()
        .filter_map(|description| {
            let [element] = *description.parameters else { return None };
            let rank = description.name.strip_prefix(*own.get(&element)?)?;
            let is_array = description.flags.contains(TypeFlags::ARRAY) && rank.starts_with('[');
            let element = whole.get(&element).filter(|_| is_array)?;
            if !budget.takes(element) {
                return None;
            }
            Some((description.id, [element, rank].concat()))
        })
        .collect();
    whole.extend(arrays);
    whole
}
