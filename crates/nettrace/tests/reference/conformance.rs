//! Small streams that another reader's tests build, each with that reader's result, or its reason to refuse
//! it.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use nettrace::SliceReader;

/// Reads every stream of the archive.
pub(crate) fn run(archive: &Path) {
    let mut files = BTreeMap::new();
    for (name, content) in files_of(&crate::bytes_of(archive)) {
        let name = name.rsplit('/').next().unwrap_or_default().to_owned();
        files.insert(name, content);
    }
    let mut read = 0;
    let mut refused = 0;
    let mut failures = Vec::new();
    for (name, stream) in
        files.iter().filter_map(|(name, stream)| Some((name.strip_suffix(".nettrace")?, stream)))
    {
        if let Some(reason) = files.get(&format!("{name}.refused")) {
            refuse(name, stream, &String::from_utf8_lossy(reason));
            refused += 1;
        } else {
            let reference = &files[&format!("{name}.events.jsonl")];
            if let Err(difference) = crate::compare(stream, reference) {
                failures.push(format!("{name}: {difference}"));
            }
            read += 1;
        }
    }
    println!("{read} streams read as expected, {refused} damaged ones named");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(read >= 47 && refused >= 11, "streams are missing: {read} read, {refused} refused");
}

/// Where the other reader throws, ours gives everything whole and names the damage, or refuses with a reason.
fn refuse(name: &str, stream: &[u8], reason: &str) {
    let mut events = match SliceReader::new(stream) {
        Ok(events) => events,
        Err(error) => return println!("{name}: refused: {error} (other reader: {})", reason.trim()),
    };
    let mut count = 0;
    let mut fields = None;
    while let Some(event) = events.next().expect("damage is no error") {
        count += 1;
        fields = fields.or_else(|| event.fields().find_map(Result::err));
    }
    println!(
        "{name}: {count} events, damage {:?}, cut at {:?}, fields {fields:?} (other reader: {})",
        events.damage(),
        events.truncated_at(),
        reason.trim()
    );
    assert!(
        events.damage_count() > 0 || events.truncated_at().is_some() || fields.is_some(),
        "{name}: nothing is found wrong, but the other reader says: {reason}"
    );
}

/// The regular files of a tar archive: 512-byte headers with name, size in octal and kind, each followed by
/// its content.
fn files_of(mut archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    while let Some((header, rest)) = archive.split_at_checked(512) {
        let text = |range: std::ops::Range<usize>| {
            String::from_utf8_lossy(&header[range]).trim_end_matches(['\0', ' ']).trim().to_owned()
        };
        let Ok(size) = usize::from_str_radix(&text(124..136), 8) else { break };
        let mut content = Vec::new();
        rest.take(size as u64).read_to_end(&mut content).expect("reading memory");
        if matches!(header[156], b'0' | 0) && !text(0..100).is_empty() {
            files.push((text(0..100), content));
        }
        archive = rest.get(size.next_multiple_of(512)..).unwrap_or_default();
    }
    files
}
