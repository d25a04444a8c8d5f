//! Source lines of .NET methods, read from portable PDBs.
//!
//! **Use it** to map methods to source lines, or a program to the PDB that belongs to it. **Not for** PDBs
//! of Windows' own format, and the search for files and servers of symbols.
//!
//! Features: none. Rust 1.89 or later.
//!
//! A .NET compiler writes the file `App.pdb` next to `App.dll`, which maps the IL of each method to source
//! lines; or it embeds that file, compressed, in `App.dll` itself. [`Pdb`] reads it. [`Image`] finds the
//! embedded PDB and the id of the PDB that a program was built with.
//!
//! ```no_run
//! use portable_pdb::{Image, Pdb};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let program = std::fs::read("App.dll")?;
//! let image = Image::parse(&program)?;
//! let bytes = match image.embedded_pdb(64 << 20)? {
//!     Some(bytes) => bytes,
//!     None => std::fs::read("App.pdb")?,
//! };
//! let pdb = Pdb::parse(&bytes)?;
//! assert_eq!(Some(pdb.id().guid), image.code_view().map(|code_view| code_view.guid));
//! if let Some(line) = pdb.line(0x0600_0001, 0)? {
//!     println!("{}:{}", pdb.document_name(line.document)?, line.line);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A program that was published as a single file can have PDBs among its files: [`Bundle`] lists them.
//!
//! [`type_definitions`] reads the types that a program defines, with their enclosing types and static fields,
//! from the program itself. [`ProgramMetadata`] names types, methods and fields by token.
//!
//! # Untrusted input
//!
//! Every offset, length and count is checked against the remaining bytes, the sizes of a decompressed PDB and
//! of a name are bounded, and nothing panics. Parsing reads only the sizes of the tables. [`Pdb::line`]
//! decodes a method's points up to the offset; for many offsets [`Pdb::method_lines`] decodes them once,
//! within a limit.
//!
//! # Out of scope
//!
//! This crate opens no files, and does not read Windows PDBs (MSF), local variables or embedded sources.
//!
//! # Source
//! *Portable PDB v1.0: Format Specification* and *PE/COFF Specification for debug directory entries* of
//! dotnet/runtime (`docs/design/specs`); ECMA-335, partition II, chapters 23 and 24.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap
    )
)]

mod bundle;
mod cursor;
mod document;
mod error;
mod image;
mod local_variable;
mod method_lines;
mod pdb;
mod program_metadata;
mod sequence_point;
mod stream;
mod type_definition;

pub use bundle::{Bundle, BundledFile};
pub use document::DocumentId;
pub use error::Error;
pub use image::{CodeView, Image};
pub use local_variable::{LocalVariable, LocalVariables};
pub use method_lines::MethodLines;
pub use pdb::{Pdb, PdbId};
pub use program_metadata::{FieldDefinition, MethodDefinition, ProgramMetadata};
pub use sequence_point::{SequencePoint, SequencePoints, SourceSpan};
pub use type_definition::{TypeDefinition, type_definitions};

pub use uuid::Uuid;

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// A compile-time check: types that hold data are `Send`, so a server can use them in any thread.
#[cfg(test)]
mod send {
    use super::*;

    const fn is_send<T: Send>() {}

    const _: () = {
        is_send::<(Bundle, Image<'_>, LocalVariables, MethodLines, Pdb<'_>, ProgramMetadata<'_>)>();
    };
}
