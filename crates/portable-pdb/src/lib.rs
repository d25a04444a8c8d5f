//! Source lines of .NET methods, out of portable PDBs.
//!
//! A compiler for .NET writes beside `App.dll` a file `App.pdb` that tells which IL of which method came from which line; or it
//! puts that file, compressed, into `App.dll` itself. [`Pdb`] reads it, [`Image`] finds the embedded one and says which PDB
//! a program was built with.
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
//!     println!("{}:{}", pdb.document(line.document)?, line.line);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What a file may do
//!
//! Files need not be what their names say. Every offset, length and count is checked against the bytes at hand, what is
//! unpacked and what names are put together of is bounded, and nothing panics. Parsing looks at the tables' sizes and at nothing
//! else; a line is found where it stands, without an index of the others.
//!
//! # What this crate does not do
//!
//! It opens no file, reads no Windows PDBs (MSF), no local variables and no embedded sources.
//!
//! # Source
//! *Portable PDB v1.0: Format Specification* and *PE/COFF Specification for debug directory entries* of dotnet/runtime
//! (`docs/design/specs`); ECMA-335, partition II, chapters 23 and 24.
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

mod cursor;
mod document;
mod error;
mod image;
mod pdb;
mod point;
mod stream;

pub use document::DocumentId;
pub use error::Error;
pub use image::{CodeView, Image};
pub use pdb::{Line, Pdb, PdbId};
pub use point::{Place, SequencePoint, SequencePoints};
