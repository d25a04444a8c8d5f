//! Columns for fields of events.

use nettrace_tables::{Dataset, Error, Options, PromotedColumn, TABLES};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;

use crate::recording;
use crate::tables::{Written, contents, field, files, inputs};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

fn columns(texts: &[&str]) -> Vec<PromotedColumn> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Exports a recording with columns.
fn export_with(name: &str, texts: &[&str]) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let bytes = recording(name);
    let dataset = Dataset::new(folder.path().join("data"), Options::default());
    dataset.promote(&columns(texts)).unwrap();
    let plan = dataset.plan(inputs(folder.path(), &[(name, &bytes)])).unwrap();
    dataset.export(&plan.shards[0]).unwrap();
    Written { folder, plan }
}

#[test]
fn no_text_is_left_where_fields_are_dropped() {
    let name = "net10-gcverbose.nettrace";
    let (folder, bytes) = (tempfile::tempdir().unwrap(), recording(name));
    let promoted = |options, folder: &std::path::Path| {
        let dataset = Dataset::new(folder.join("data"), options);
        let texts = ["GC/AllocationTick.TypeName", "GC/Start.Depth:long"];
        dataset
            .promote(&columns(&texts.map(|text| format!("{RUNTIME}/{text}")).each_ref().map(String::as_str)))
            .unwrap();
        let plan = dataset.plan(inputs(folder, &[(name, &bytes)])).unwrap();
        dataset.export(&plan.shards[0]).unwrap();
        plan
    };
    let plan = promoted(Options::default().with_drop_fields(true), folder.path());
    let written = Written { folder, plan };
    let has = |column: &str| {
        let column = format!("p_microsoft_windows_dotnetruntime_gc_{column}");
        written.column("events", &column).iter().any(|value| *value != Field::Null)
    };
    assert!(!has("allocationtick_typename"));
    assert!(has("start_depth"), "a number is no secret");
}

#[test]
fn fields_are_columns_of_their_type() {
    let depth = format!("{RUNTIME}/GC/Start.Depth:long");
    let as_text = format!("{RUNTIME}/gc/stop.depth");
    let as_double = format!("{RUNTIME}/GC/Start.Count:double");
    let wrong_type = format!("{RUNTIME}/GC/AllocationTick.TypeName:long");
    let texts = [&*depth, &as_text, &as_double, &wrong_type, "No such/Ev\"ent';--.Fie\u{2028}ld:bool"];
    let written = export_with("net10-gcverbose.nettrace", &texts);
    let [mut starts, mut stops] = [0, 0];
    for row in written.rows("events") {
        let Field::Str(event) = field(&row, "event") else { panic!("no name") };
        let [depth, as_text, count] = ["start_depth", "stop_depth", "start_count"]
            .map(|name| field(&row, &format!("p_microsoft_windows_dotnetruntime_gc_{name}")));
        match event.as_str() {
            "GC/Start" => {
                let Field::Int(generation) = field(&row, "gc_generation") else { panic!("no number") };
                assert_eq!(depth, Field::Long(generation.into()));
                let (Field::Double(count), Field::Long(number)) = (count, field(&row, "gc_number")) else {
                    panic!("no numbers")
                };
                assert_eq!(count.to_string(), number.to_string());
                starts += 1;
            }
            "GC/Stop" => {
                assert_eq!(as_text, Field::Str(field(&row, "gc_generation").to_string()));
                stops += 1;
            }
            _ => assert_eq!((depth, as_text, count), (Field::Null, Field::Null, Field::Null)),
        }
        let tick = "p_microsoft_windows_dotnetruntime_gc_allocationtick_typename";
        assert_eq!(field(&row, tick), Field::Null);
        assert_eq!(field(&row, "p_no_such_ev_ent_____fie_ld"), Field::Null);
    }
    assert!(starts > 3 && stops > 3);
    // The columns follow the table's own columns, and the file describes them.
    let path = &files(&written.root().join("events"))[0];
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let metadata = reader.metadata().file_metadata();
    let events = TABLES.iter().find(|table| table.name == "events").unwrap();
    assert_eq!(metadata.schema_descr().num_columns(), events.columns.len() + texts.len());
    let promoted = metadata.key_value_metadata().unwrap().iter().find(|pair| pair.key == "promoted").unwrap();
    assert!(promoted.value.as_ref().unwrap().contains("GC/Start.Depth:long"));
}

#[test]
fn promoted_columns_stay_promoted() {
    let depth = format!("{RUNTIME}/GC/Start.Depth:long");
    let written = export_with("net10-gcverbose.nettrace", &[&depth]);
    let before = contents(&written.root());
    let dataset = Dataset::new(written.root(), Options::default());
    // The same column again, in other letter case, changes nothing.
    dataset.promote(&columns(&[&depth.to_uppercase().replace(":LONG", ":long")])).unwrap();
    assert_eq!(contents(&written.root()), before);
    for other in [format!("{RUNTIME}/GC/Start.Depth:text"), format!("{RUNTIME}/GC.Start.Depth:long")] {
        let error = dataset.promote(&columns(&[&other])).unwrap_err();
        assert!(matches!(error, Error::Promoted { .. }), "{other}: {error}");
        assert!(error.to_string().contains(&depth), "{error}");
    }
    // A later export has the column without being given it, and earlier ones are unchanged.
    dataset.promote(&columns(&["A/B.c"])).unwrap();
    let bytes = recording("net10-typed.nettrace");
    let plan = dataset.plan(inputs(written.folder.path(), &[("typed", &bytes)])).unwrap();
    assert_eq!(plan.shards[0].promoted, columns(&["A/B.c", &depth]));
    dataset.export(&plan.shards[0]).unwrap();
    let after = contents(&written.root());
    assert!(before.iter().all(|file| after.contains(file)));
    // A file that is not a column is reported, and not overwritten.
    std::fs::write(written.root().join("_promoted/p_x_y_z.json"), "{}").unwrap();
    let error = dataset.plan(Vec::new()).unwrap_err().to_string();
    assert!(error.contains("_promoted/p_x_y_z.json: this is not a promoted column"), "{error}");
}
