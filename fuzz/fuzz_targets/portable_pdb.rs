//! Any bytes as a PDB, or as a program that contains one: all methods and sequence points.

#![no_main]

use libfuzzer_sys::fuzz_target;
use portable_pdb::{Image, Pdb};

/// The highest length of an unpacked PDB.
const LIMIT: usize = 1 << 20;

fuzz_target!(|input: &[u8]| {
    // The unpacked PDB may be larger than the program that holds it, up to its limit.
    dipc_fuzz::bounded(input.len() + LIMIT, || check(input));
});

fn check(input: &[u8]) {
    read_pdb(input);
    if let Ok(image) = Image::parse(input)
        && let Ok(Some(pdb)) = image.embedded_pdb(LIMIT)
    {
        assert!(image.has_embedded_pdb() && pdb.len() <= LIMIT);
        read_pdb(&pdb);
    }
}

fn read_pdb(bytes: &[u8]) {
    let Ok(pdb) = Pdb::parse(bytes) else { return };
    // Many rows may refer to the same points: to read all would take time quadratic in the length of the
    // input.
    for method in 0..=pdb.method_count().min(64) {
        let method = 0x0600_0000 | method;
        if let Ok(variables) = pdb.local_variables(method) {
            // Each has a row of four bytes at least, but scopes of one method can share rows.
            for of in variables.variables().iter().take(64) {
                let found = variables.name(of.slot.into(), Some(of.scope.start));
                assert!(
                    found.is_some()
                        || of.scope.is_empty()
                        || variables.variables().iter().any(|of| of.is_hidden)
                );
            }
        }
        let Ok(points) = pdb.sequence_points(method) else { continue };
        let mut count = 0;
        let mut last = None;
        for point in points {
            count += 1;
            let Ok(point) = point else { break };
            assert!(last.is_none_or(|last| last < point.il_offset));
            last = Some(point.il_offset);
            if count <= 64 {
                let name = pdb.document_name(point.document);
                assert!(name.is_err() || point.document.number() <= pdb.document_count());
            }
        }
        assert!(count <= bytes.len());
        if let (Ok(Some(line)), Some(last)) = (pdb.line(method, u32::MAX), last) {
            assert!(pdb.line(method, last).is_ok_and(|found| found == Some(line)));
        }
    }
}
