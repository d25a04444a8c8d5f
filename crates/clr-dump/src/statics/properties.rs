//! The properties that a program was started with: those of its `runtimeconfig.json`, and the host's own.
//!
//! # Source
//! dotnet/runtime `System.Private.CoreLib/src/System/AppContext.cs` (`s_dataStore`),
//! `System/Collections/Generic/Dictionary.cs` (`_entries`); the same in dotnet/coreclr.

use crate::heap::object::{ObjectContent, Value};
use crate::statics::Statics;

const TYPE: &str = "System.AppContext";
const FIELD: &str = "s_dataStore";
/// Maximum number of properties to read.
const MAX_PROPERTIES: u32 = 1 << 10;

impl Statics<'_> {
    /// Returns the properties of the program with names that are wanted, in the order of their names, with at
    /// most 256 characters of each value; `None` if the memory lacks them.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for (name, value) in dump.statics().properties(|name| name.starts_with("System.GC.")).unwrap_or_default() {
    ///     println!("{name}: {value}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn properties(self, is_wanted: impl Fn(&str) -> bool) -> Option<Vec<(String, String)>> {
        let (dictionary, _) = self.core_library_field(TYPE, FIELD)?;
        let heap = self.dump.heap();
        let Value::Reference { address, .. } = heap.field_value(dictionary, "_entries")? else { return None };
        let entries = heap.content(&heap.object_at(address)?, MAX_PROPERTIES).ok()?;
        let ObjectContent::Array { elements, .. } = entries else { return None };
        let mut properties: Vec<_> =
            elements.into_iter().filter_map(property).filter(|(name, _)| is_wanted(name)).collect();
        properties.sort();
        Some(properties)
    }
}

/// The name and the value of an entry of a dictionary; `None` of one that has no strings.
fn property(entry: Value) -> Option<(String, String)> {
    let Value::Structure { fields, .. } = entry else { return None };
    let (mut name, mut value) = (None, None);
    for field in fields {
        let Value::Reference { text: Some((text, _)), .. } = field.value else { continue };
        match &*field.field.name {
            "key" => name = Some(text),
            "value" => value = Some(text),
            _ => {}
        }
    }
    name.zip(value)
}
