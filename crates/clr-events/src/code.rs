//! Code by address: methods, and in recordings of a whole machine (V6) files and symbols.

mod string_table;

mod ranges;

mod il_maps;
mod method_entry;
mod method_record;

mod method;
mod module;
mod native;

mod il_matcher;
mod process;

mod code_map;
mod framework;
mod symbolizer;

mod origin;

pub use code_map::CodeMap;
pub use framework::{is_framework, is_user_assembly};
pub use method::{CodeKind, Method, Tier};
pub use module::Module;
pub use native::Symbol;
pub use origin::CodeOrigin;
pub(crate) use string_table::StringId;
pub use symbolizer::{Code, Symbolizer, Unresolved, UnresolvedReason};
