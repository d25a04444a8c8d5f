//! Prints every sequence point of a PDB, or of the embedded PDB of a program: `cargo run --example points --
//! App.pdb`.

use std::error::Error;

use portable_pdb::{Image, Pdb, SequencePoint};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("the path of a PDB or program is missing")?;
    let mut bytes = std::fs::read(path)?;
    if let Ok(image) = Image::parse(&bytes) {
        bytes = image.embedded_pdb(256 << 20)?.ok_or("the program has no embedded PDB")?;
    }
    let pdb = Pdb::parse(&bytes)?;
    println!("{} {:08x}", pdb.id().guid, pdb.id().stamp);
    for method in 1..=pdb.method_count() {
        let method = 0x0600_0000 | method;
        for point in pdb.sequence_points(method)? {
            let SequencePoint { il_offset, document, span, .. } = point?;
            let place = span.map_or_else(
                || "hidden".to_owned(),
                |it| format!("{}:{}-{}:{}", it.start_line, it.start_column, it.end_line, it.end_column),
            );
            println!("{method:08x} {il_offset} {place} {}", pdb.document_name(document)?);
        }
    }
    Ok(())
}
