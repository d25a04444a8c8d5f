//! Every recording, written again, against itself: read by `nettrace`, event by event.

mod equal;
mod files;

use equal::{Expected, assert_equal};
use nettrace::{Reader, SliceReader};
use nettrace_writer::{Error, Omissions, Version, transcode};

fn written(bytes: &[u8], version: Version) -> (Vec<u8>, Omissions) {
    let mut out = Vec::new();
    let events = SliceReader::new(bytes).expect("a recording");
    let (_, transcoder) = transcode(events, version, |part| {
        out.extend_from_slice(part);
        Ok::<_, Error>(())
    })
    .expect("a recording that can be written");
    (out, *transcoder.omissions())
}

fn version(bytes: &[u8]) -> u32 {
    SliceReader::new(bytes).expect("a recording").info().expect("a header").version
}

#[test]
fn in_its_own_version_it_is_equal() {
    files::each(|recording| {
        let from = version(&recording.bytes);
        let own = if from == 6 { Version::V6 } else { Version::V4 };
        let (out, omissions) = written(&recording.bytes, own);
        println!("{}: {} bytes, written {}", recording.name, recording.bytes.len(), out.len());
        assert!(omissions.is_empty(), "{}: {omissions:?}", recording.name);
        let expected = Expected { from_netperf: from < 4, ..Expected::default() };
        assert_equal(&recording.name, &recording.bytes, &out, expected);
        assert!(written(&out, own).0 == out, "{}: written again it differs", recording.name);
    });
}

#[test]
fn in_the_other_version_it_has_the_same_events() {
    files::each(|recording| {
        let from = version(&recording.bytes);
        let other = if from == 6 { Version::V4 } else { Version::V6 };
        let (out, _) = written(&recording.bytes, other);
        let expected = Expected {
            from_netperf: from < 4,
            other_kinds: true,
            to_v4: from == 6,
            other_labels: true,
            ..Expected::default()
        };
        assert_equal(&recording.name, &recording.bytes, &out, expected);
    });
}

#[test]
fn however_it_is_read_the_bytes_are_the_same() {
    files::each(|recording| {
        let own =
            Version::of(SliceReader::new(&recording.bytes).expect("a recording").info().expect("a header"));
        let (slice, _) = written(&recording.bytes, own);
        let mut out = Vec::new();
        transcode(Reader::new(&recording.bytes[..]).expect("a recording"), own, |part| {
            out.extend_from_slice(part);
            Ok::<_, Error>(())
        })
        .expect("a recording that can be written");
        assert!(slice == out, "{}", recording.name);
    });
}
