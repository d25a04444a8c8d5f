//! Real PDBs, compared with the reading of System.Reflection.Metadata, and damaged at every offset.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use portable_pdb::{Error, Image, Pdb, ProgramMetadata, SequencePoint};

fn testdata(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/workload/lines").join(name)).unwrap()
}

/// Prints every sequence point of a PDB, as `testdata/workload/lines/Points.cs` prints it.
fn points(bytes: &[u8]) -> Result<String, Error> {
    let pdb = Pdb::parse(bytes)?;
    let mut text = format!("{} {:08x}\n", pdb.id().guid, pdb.id().stamp);
    for method in 1..=pdb.method_count() {
        let method = 0x0600_0000 | method;
        for point in pdb.sequence_points(method)? {
            let SequencePoint { il_offset, document, span, .. } = point?;
            let place = span.map_or_else(
                || "hidden".to_owned(),
                |it| format!("{}:{}-{}:{}", it.start_line, it.start_column, it.end_line, it.end_column),
            );
            writeln!(text, "{method:08x} {il_offset} {place} {}", pdb.document_name(document)?).unwrap();
        }
    }
    Ok(text)
}

/// The program of the doc examples is a copy, since packages lack testdata.
#[test]
fn the_example_program_is_that_of_testdata() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/Lines.dll");
    assert_eq!(fs::read(path).unwrap(), testdata("embedded/Lines.dll"));
}

#[test]
fn every_point_is_that_of_the_other_reader() {
    let expected = String::from_utf8(testdata("Lines.points.txt")).unwrap();
    assert_eq!(points(&testdata("Lines.pdb")).unwrap(), expected);
    assert!(expected.contains(" hidden ") && expected.contains("Elsewhere.cs"));
}

#[test]
fn a_line_is_that_of_the_last_point_with_a_line_before() {
    let bytes = testdata("Lines.pdb");
    let pdb = Pdb::parse(&bytes).unwrap();
    let expected = String::from_utf8(testdata("Lines.points.txt")).unwrap();
    let mut before = None;
    let mut checked = 0;
    for row in expected.lines().skip(1) {
        let [method, il_offset, place, file] = row.splitn(4, ' ').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let method = u32::from_str_radix(method, 16).unwrap();
        let il_offset: u32 = il_offset.parse().unwrap();
        let line = place.split_once(':').map(|(line, _)| (line.parse().unwrap(), file));
        before = match (line, before) {
            (None, Some((of, line))) if of == method => Some((method, line)),
            (line, _) => Some((method, line)),
        };
        for il_offset in [il_offset, il_offset + 1] {
            let found = pdb.line(method, il_offset).unwrap();
            let found = found.map(|line| (line.line, pdb.document_name(line.document).unwrap()));
            let next = expected.contains(&format!("{method:08x} {il_offset} ")) && il_offset > 0;
            if !next || row.starts_with(&format!("{method:08x} {il_offset} ")) {
                assert_eq!(found, before.unwrap().1.map(|(line, file)| (line, file.to_owned())), "{row}");
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "{checked}");
    for token in [0, 0x0600_0000, 0x0600_ffff, 0x0200_0001, u32::MAX] {
        assert_eq!(pdb.line(token, 0), Ok(None), "{token:#x}");
    }
}

/// Prints every local variable of a PDB, as `testdata/workload/lines/Locals.cs` prints it.
fn locals(bytes: &[u8]) -> Result<String, Error> {
    let pdb = Pdb::parse(bytes)?;
    let mut text = String::new();
    for method in 1..=pdb.method_count().min(64) {
        let method = 0x0600_0000 | method;
        for of in pdb.local_variables(method)?.variables() {
            let attributes = if of.is_hidden { "DebuggerHidden" } else { "None" };
            let (start, end) = (of.scope.start, of.scope.end);
            writeln!(text, "{method:08x} {} {start}..{end} {attributes} {}", of.slot, of.name).unwrap();
        }
    }
    Ok(text)
}

#[test]
fn every_local_variable_is_that_of_the_other_reader() {
    let expected = String::from_utf8(testdata("Lines.locals.txt")).unwrap();
    assert_eq!(locals(&testdata("Lines.pdb")).unwrap(), expected);
    assert!(expected.contains(" sum") && expected.contains(" CS$<>8__locals0"));
    // The same source, optimized: the variables that are left have other slots.
    let image = testdata("embedded/Lines.dll");
    let embedded = Image::parse(&image).unwrap().embedded_pdb(1 << 20).unwrap().unwrap();
    assert!(locals(&embedded).unwrap().contains("06000003 0 0.."));
    let pdb = testdata("Lines.pdb");
    let pdb = Pdb::parse(&pdb).unwrap();
    for token in [0, 0x0600_0000, 0x0600_ffff, 0x0200_0001, u32::MAX] {
        assert!(pdb.local_variables(token).unwrap().variables().is_empty(), "{token:#x}");
    }
}

#[test]
fn variables_of_a_damaged_pdb_are_an_error_or_others() {
    let whole = testdata("Lines.pdb");
    let (mut read, mut errors) = (0, 0);
    let mut bytes = whole.clone();
    for at in 0..whole.len() {
        for value in [0xff, whole[at].wrapping_add(1)] {
            bytes[at] = value;
            match locals(&bytes) {
                Ok(_) => read += 1,
                Err(_) => errors += 1,
            }
        }
        bytes[at] = whole[at];
    }
    assert!(read > whole.len() && errors > 0, "{read} and {errors}");
    for length in 0..whole.len() {
        let _ = locals(&whole[..length]);
    }
}

/// Also for damaged PDBs, except for the reason.
#[test]
fn cached_lines_match_freshly_decoded_lines() {
    let whole = testdata("Lines.pdb");
    let mut found = 0;
    let mut compare = |bytes: &[u8]| {
        let Ok(pdb) = Pdb::parse(bytes) else { return };
        for method in 0x0600_0000..=0x0600_0000 | pdb.method_count().min(40) {
            let Ok(lines) = pdb.method_lines(method, bytes.len()) else {
                assert!(pdb.line(method, 0).is_err());
                continue;
            };
            for il_offset in (0..300).step_by(3).chain([u32::MAX]) {
                let line = lines.line(il_offset);
                assert_eq!(line, pdb.line(method, il_offset).unwrap_or_default(), "{method:x} {il_offset}");
                found += usize::from(line.is_some());
            }
        }
    };
    compare(&whole);
    let mut bytes = whole.clone();
    for at in (0..whole.len()).step_by(7) {
        bytes[at] ^= 0x55;
        compare(&bytes);
        bytes[at] = whole[at];
    }
    assert!(found > 10_000, "{found}");
    let pdb = Pdb::parse(&whole).unwrap();
    let method = (0x0600_0001..0x0601_0000).find(|method| pdb.line(*method, 0).unwrap().is_some()).unwrap();
    let size = pdb.method_lines(method, usize::MAX).unwrap().byte_count();
    assert!(matches!(pdb.method_lines(method, size - 1), Err(Error::TooLarge { .. })));
}

#[test]
fn a_program_refers_to_its_pdb_or_has_it_embedded() {
    let (program, beside) = (testdata("Lines.dll"), testdata("Lines.pdb"));
    let image = Image::parse(&program).unwrap();
    let code_view = image.code_view().unwrap();
    assert_eq!((code_view.guid, code_view.age), (Pdb::parse(&beside).unwrap().id().guid, 1));
    assert_eq!(code_view.path, b"/_/Lines.pdb");
    assert_eq!(image.embedded_pdb(1 << 20), Ok(None));

    let program = testdata("embedded/Lines.dll");
    let image = Image::parse(&program).unwrap();
    let embedded = image.embedded_pdb(1 << 20).unwrap().unwrap();
    let pdb = Pdb::parse(&embedded).unwrap();
    assert_eq!(pdb.id().guid, image.code_view().unwrap().guid);
    assert_eq!(pdb.document_count(), Pdb::parse(&beside).unwrap().document_count());
    let too_large = image.embedded_pdb(embedded.len() - 1);
    assert!(matches!(too_large, Err(Error::TooLarge { .. })), "{too_large:?}");
}

#[test]
fn other_files_are_not_portable_pdbs() {
    let message = |bytes: &[u8]| points(bytes).unwrap_err().to_string();
    assert_eq!(message(b""), "not a portable PDB: it does not begin with BSJB");
    assert_eq!(message(b"Microsoft C/C++ MSF 7.00\r\n"), "not a portable PDB: it is a Windows PDB");
    assert_eq!(message(&testdata("Lines.dll")), "not a portable PDB: it does not begin with BSJB");
    assert!(Image::parse(&testdata("Lines.pdb")).is_err());
}

#[test]
fn a_truncated_pdb_is_damaged() {
    let bytes = testdata("Lines.pdb");
    for length in 0..bytes.len() {
        // The last stream is needed for lines.
        assert!(points(&bytes[..length]).is_err(), "{length}");
    }
}

#[test]
fn damage_does_not_panic() {
    let whole = testdata("Lines.pdb");
    let mut unharmed = 0;
    let mut bytes = whole.clone();
    for at in 0..whole.len() {
        for value in [0, 0xff, whole[at].wrapping_add(1)] {
            bytes[at] = value;
            unharmed += usize::from(points(&bytes).is_ok());
        }
        bytes[at] = whole[at];
    }
    // Most of it is checksums, names and constants; damage elsewhere is detected.
    assert!(unharmed > whole.len() && unharmed < 3 * whole.len(), "{unharmed} of {}", 3 * whole.len());
    for name in ["Lines.dll", "embedded/Lines.dll"] {
        let whole = testdata(name);
        let mut bytes = whole.clone();
        for at in 0..whole.len() {
            for value in [0, 0xff] {
                bytes[at] = value;
                if let Ok(image) = Image::parse(&bytes)
                    && let Ok(Some(pdb)) = image.embedded_pdb(1 << 20)
                {
                    assert!(pdb.len() <= 1 << 20);
                    let _ = Pdb::parse(&pdb);
                }
            }
            bytes[at] = whole[at];
        }
    }
}

/// As C# declares them in `testdata/workload/lines/Lines.cs`.
#[test]
fn types_of_a_program_have_the_types_around_them_and_their_static_fields() {
    let program = testdata("Lines.dll");
    let types = portable_pdb::type_definitions(&program).unwrap();
    let names: Vec<_> = types.iter().map(|of| &*of.name).collect();
    let expected = [
        "<Module>",
        "Lines",
        "Moved",
        "Lines+Generic`1",
        "Lines+<>c",
        "Lines+<>c__DisplayClass6_0",
        "Lines+<Later>d__5",
        "Lines+<Numbers>d__4",
    ];
    assert_eq!(names, expected);
    assert_eq!(types[1].static_fields, ["Count"]);
    assert_eq!(types[4].static_fields[..2], ["<>9", "<>9__0_0"]);
    assert!(types[3].static_fields.is_empty());
    let embedded = portable_pdb::type_definitions(&testdata("embedded/Lines.dll")).unwrap();
    assert_eq!(embedded.len(), types.len());
    assert!(matches!(portable_pdb::type_definitions(&testdata("Lines.pdb")), Err(Error::NotAnImage(_))));
}

#[test]
fn types_of_a_damaged_program_are_an_error_or_others() {
    let program = testdata("Lines.dll");
    let (mut whole, mut errors) = (0, 0);
    for offset in 0..program.len() {
        let mut count = |bytes: &[u8]| match portable_pdb::type_definitions(bytes) {
            Ok(_) => whole += 1,
            Err(_) => errors += 1,
        };
        count(&program[..offset]);
        let mut damaged = program.clone();
        damaged[offset] ^= 0xff;
        count(&damaged);
    }
    assert!(whole > 0 && errors > 0, "{whole} and {errors}");
}

#[test]
fn types_and_methods_are_named_by_their_rows() {
    let program = testdata("../net8.0/workload.dll");
    let metadata = ProgramMetadata::of_program(&program).unwrap();
    let types = portable_pdb::type_definitions(&program).unwrap();
    assert_eq!(metadata.module_name().unwrap(), "workload.dll");
    assert_eq!(usize::try_from(metadata.type_count()).unwrap(), types.len());
    for (row, of) in (1..).zip(&types) {
        assert_eq!(metadata.type_name(row).unwrap(), of.name);
    }
    assert!(types.iter().any(|of| of.name == "Nested+Outer"));
    let names: Vec<(String, String, &[u8])> = (1..=metadata.method_count())
        .map(|row| metadata.method(row).unwrap())
        .map(|method| (metadata.type_name(method.type_row).unwrap(), method.name, method.signature))
        .collect();
    // An instance method of void (int, int).
    let tick = names.iter().find(|(of, name, _)| of == "Typed" && name == "Tick").unwrap();
    assert_eq!(tick.2, [0x20, 2, 1, 8, 8]);
    assert!(names.iter().any(|(of, name, _)| of == "Nested+Inner" && name == "get_X"));
    for row in [0, metadata.method_count() + 1, 0x00ff_ffff, u32::MAX] {
        assert!(metadata.method(row).is_err() && metadata.type_name(row).is_err(), "{row}");
    }
}

#[test]
fn methods_belong_to_the_type_of_their_rows_and_calls_have_names() {
    let program = testdata("../incidents/stuck.dll");
    let metadata = ProgramMetadata::of_program(&program).unwrap();
    for row in 1..=metadata.type_count() {
        for method in metadata.methods_of_type(row).unwrap() {
            assert_eq!(metadata.method(method).unwrap().type_row, row);
        }
    }
    let printer = (1..=metadata.type_count()).find(|row| metadata.type_name(*row).unwrap() == "Shop.Printer");
    let names: Vec<_> = metadata
        .methods_of_type(printer.unwrap())
        .unwrap()
        .map(|row| metadata.method(row).unwrap())
        .map(|method| (method.name, method.body > 0))
        .collect();
    assert_eq!(names, [("Print".to_owned(), true), (".cctor".to_owned(), true)]);
    let referenced: Vec<_> =
        (1..200).map_while(|row| metadata.referenced_method(0x0a00_0000 | row).ok()).flatten().collect();
    let release = ("System.Threading.SemaphoreSlim".to_owned(), "Release".to_owned());
    assert!(referenced.contains(&release), "{referenced:?}");
    assert_eq!(metadata.referenced_method(0x0600_0001).unwrap(), None);
    assert!(metadata.referenced_method(0x0aff_ffff).is_err());
}

#[test]
fn fields_belong_to_the_type_of_their_rows() {
    let program = testdata("../heap/heap.dll");
    let metadata = ProgramMetadata::of_program(&program).unwrap();
    let fields_of = |name: &str| {
        let row = (1..=metadata.type_count()).find(|row| metadata.type_name(*row).unwrap() == name).unwrap();
        let rows = metadata.fields_of_type(row).unwrap();
        rows.map(|row| metadata.field(row).unwrap()).collect::<Vec<_>>()
    };
    // As `heap.cs` declares them.
    let row = fields_of("Shop.Row");
    let names: Vec<_> = row.iter().map(|field| (&*field.name, field.signature)).collect();
    assert_eq!(names, [("Id", &[6, 8][..]), ("Title", &[6, 14]), ("Data", &[6, 0x1d, 5])]);
    assert_eq!(fields_of("Shop.Local").len(), 1);
    // The constants of an enumeration do not have storage; its value does.
    let of_color: Vec<_> =
        fields_of("Shop.Color").iter().map(|field| (field.name.clone(), field.is_constant())).collect();
    let expected = [("value__", false), ("Red", true), ("Blue", true)];
    assert_eq!(of_color, expected.map(|(name, is_constant)| (name.to_owned(), is_constant)));
    let last = metadata.fields_of_type(metadata.type_count()).unwrap().end;
    for row in [0, last, u32::MAX] {
        assert!(metadata.field(row).is_err(), "{row}");
    }
    assert!(metadata.fields_of_type(metadata.type_count() + 1).is_err());
}

/// The metadata of types that a program has made by turns: their fields and methods are in the order of their
/// making, and further tables bring them into that of the types.
#[test]
fn metadata_that_a_program_has_made_has_the_members_of_its_types() {
    let bytes = testdata("../made/made.metadata");
    let metadata = ProgramMetadata::parse(&bytes).unwrap();
    let types: Vec<_> = (1..=metadata.type_count())
        .map(|row| {
            let fields = metadata.fields_of_type(row).unwrap();
            let fields =
                fields.map(|number| metadata.field(metadata.field_row(number).unwrap()).unwrap().name);
            (metadata.type_name(row).unwrap(), fields.collect::<Vec<_>>())
        })
        .collect();
    // As `made.cs` makes them.
    let expected = [
        ("<Module>", &[][..]),
        ("Made.First", &["Number", "Label"]),
        ("Made.Second", &["Text", "Shared", "Count"]),
        ("Made.First+Inner", &["Ratio"]),
    ];
    assert_eq!(
        types,
        expected.map(|(name, fields)| (name.to_owned(), fields.iter().map(|it| (*it).to_owned()).collect()))
    );
    let methods = (1..=metadata.method_count()).map(|row| metadata.method(row).unwrap());
    let methods: Vec<_> = methods.map(|of| (metadata.type_name(of.type_row).unwrap(), of.name)).collect();
    let of =
        |name: &str| methods.iter().filter(|(_, of)| of == name).map(|(of, _)| &**of).collect::<Vec<_>>();
    assert_eq!((of("Runs"), of("Calls")), (vec!["Made.Second"], vec!["Made.First"]));
    assert_eq!(of("Unused"), ["Made.First", "Made.First+Inner"]);
    for end in 0..bytes.len() {
        let Ok(metadata) = ProgramMetadata::parse(&bytes[..end]) else { continue };
        for row in 0..8 {
            let _ = (metadata.type_name(row), metadata.method(row), metadata.field_row(row));
            let _ = metadata.fields_of_type(row);
        }
    }
}

#[test]
fn a_type_has_the_values_of_its_attributes_by_their_names() {
    const INLINE: &str = "System.Runtime.CompilerServices.InlineArrayAttribute";
    const USAGE: &str = "System.AttributeUsageAttribute";
    let program = testdata("../secrets/secrets.dll");
    let metadata = ProgramMetadata::of_program(&program).unwrap();
    let attribute = |of: &str, name: &str| {
        let row = (1..=metadata.type_count()).find(|row| metadata.type_name(*row).unwrap() == of).unwrap();
        metadata.type_attribute(row, name).unwrap()
    };
    // A prolog, the length, and no named arguments. The program defines the attribute.
    assert_eq!(attribute("Secrets.Row", INLINE), Some(&[1, 0, 32, 0, 0, 0, 0, 0][..]));
    assert_eq!(attribute("Secrets.Key", INLINE), None);
    // It refers to this one: structures.
    assert_eq!(attribute(INLINE, USAGE), Some(&[1, 0, 8, 0, 0, 0, 0, 0][..]));
    assert_eq!(attribute(INLINE, INLINE), None);
    for offset in 0..program.len() {
        let mut damaged = program.clone();
        damaged[offset] ^= 0xff;
        let Ok(metadata) = ProgramMetadata::of_program(&damaged) else { continue };
        for row in 0..metadata.type_count().min(100) {
            let _ = metadata.type_attribute(row, INLINE);
        }
    }
}
