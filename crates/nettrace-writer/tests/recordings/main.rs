//! Every recording, written again, against itself: read by `nettrace`, event by event.

mod equal;
mod files;

use equal::{Expected, assert_equal, assert_same, has_shared_ids};
use nettrace::{Reader, Record, SliceReader, Thread, Ticks, TraceInfo};
use nettrace_writer::{
    Error, EventKind, EventWriter, MergeOrder, Merger, MergerOptions, Omissions, REQUESTED_EVENTS,
    Transcoder, Version, merge, transcode,
};

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
            shared_ids: from == 6 && has_shared_ids(&recording.bytes, |thread| !thread.has_ended()),
            other_labels: true,
            ..Expected::default()
        };
        assert_equal(&recording.name, &recording.bytes, &out, expected);
    });
}

#[test]
fn blocks_out_of_a_time_are_skipped_and_the_rest_is_the_same() {
    use std::io::{Cursor, Seek as _};

    let mut skipped = 0;
    files::each(|recording| {
        let bytes = &recording.bytes[..];
        // In small blocks.
        let mut events = SliceReader::new(bytes).expect("a recording");
        let info = events.info().expect("a header").clone();
        let (mut first, mut last) = (u64::MAX, 0);
        events
            .for_each(|event| (first, last) = (first.min(event.time().0), last.max(event.time().0)))
            .unwrap();
        let third = last.saturating_sub(first) / 3;
        let times = Ticks(first + third)..=Ticks(last - third);
        let reader = |skips: bool| {
            let input = Cursor::new(bytes.to_vec());
            let mut events =
                Reader::with_skip(input, |input, count| input.seek_relative(count.cast_signed())).unwrap();
            if skips {
                events.skip_blocks_outside(times.clone(), |_| false);
            }
            events
        };
        let mut found = Vec::new();
        let mut add = |event: &nettrace::Event<'_>| {
            if times.contains(&event.time()) {
                let stack = event.stack().as_bytes().to_vec();
                found.push((event.time(), event.thread_id(), event.id(), event.payload().to_vec(), stack));
            }
        };
        let mut losses = Vec::new();
        for skips in [false, true] {
            let mut events = reader(skips);
            events.for_each(|event| add(&event)).unwrap();
            assert_eq!((events.damage(), events.truncated_at()), (&[][..], None), "{}", recording.name);
            losses.push(events.loss().total());
            skipped += events.skipped_blocks();
            assert_eq!(events.skipped_blocks() > 0, events.skipped_bytes() > 0);
            assert!(info.version >= 4 || events.skipped_blocks() == 0, "netperf has no such headers");
        }
        for skips in [false, true] {
            reader(skips).in_time_order().for_each(|event| add(&event)).unwrap();
        }
        let quarter = found.len() / 4;
        assert!(found[..quarter] == found[quarter..2 * quarter], "{}", recording.name);
        assert!(found[2 * quarter..3 * quarter] == found[3 * quarter..], "{}", recording.name);
        assert!(losses[1] <= losses[0], "{}: {losses:?}", recording.name);
    });
    assert!(skipped > 20, "{skipped}");
}

/// Merges recordings, and returns the number of events of each.
fn merged(recordings: &[&[u8]]) -> (Vec<u8>, Vec<(u64, u64)>) {
    let readers = recordings.iter().map(|bytes| SliceReader::new(bytes).expect("a recording")).collect();
    let mut out = Vec::new();
    let (_, merger) = merge(readers, MergerOptions::default(), |part| {
        out.extend_from_slice(part);
        Ok::<_, Error>(())
    })
    .expect("recordings that can be merged");
    let counts = (0..recordings.len()).map(|index| merger.events(index)).collect();
    (out, counts)
}

#[test]
fn merged_alone_it_has_the_same_events() {
    files::each(|recording| {
        let (out, _) = merged(&[&recording.bytes]);
        let in_order = |bytes| SliceReader::new(bytes).expect("a recording").in_time_order();
        let (mut one, mut other) = (in_order(&recording.bytes), in_order(&out));
        let expected =
            Expected { from_netperf: true, other_kinds: true, other_labels: true, ..Expected::default() };
        let mut count = 0;
        while let Some(event) = one.next().expect("an event") {
            let written = other.next().expect("an event").expect("as many events");
            assert_same(&recording.name, count, &event, &written, expected);
            count += 1;
        }
        assert!(other.next().expect("the end").is_none(), "{}", recording.name);
        assert_eq!(one.loss().total(), other.loss().total(), "{}", recording.name);
        assert_eq!(other.damage(), [], "{}", recording.name);
        assert!(merged(&[&out]).0 == out, "{}: merged again it differs", recording.name);
    });
}

#[test]
fn merged_with_itself_it_is_there_once_and_with_others_every_event_is_there() {
    let mut all = Vec::new();
    files::each(|recording| all.push(recording.bytes.clone()));
    let info = |bytes: &[u8]| SliceReader::new(bytes).expect("a recording").info().expect("a header").clone();
    for bytes in &all {
        let (out, counts) = merged(&[bytes, bytes]);
        assert_eq!(counts[0].0, counts[1].1);
        assert_eq!((counts[0].1, counts[1].0), (0, 0));
        let mut read = SliceReader::new(bytes).expect("a recording");
        read.for_each(|_| {}).expect("a recording");
        // Losses cannot be recognized as the same, and parts share the threads of one id and name.
        let names: Vec<_> = read.threads().iter().map(|thread| (thread.id(), thread.name())).collect();
        let are_told_apart = (1..names.len()).all(|end| !names[..end].contains(&names[end]));
        assert!(read.loss().total() > 0 || !are_told_apart || merged(&[bytes]).0 == out);
    }
    all.retain(|bytes| info(bytes).pointer_size == 8);
    let slices: Vec<_> = all.iter().map(Vec::as_slice).collect();
    let (out, counts) = merged(&slices);
    let mut events = SliceReader::new(&out).expect("a recording");
    let (mut count, mut newest) = (0, Ticks(0));
    while let Some(event) = events.next().expect("an event") {
        count += 1;
        assert!(event.time() >= newest && event.is_sorted(), "not in the order of time");
        newest = event.time();
    }
    assert_eq!(count, counts.iter().map(|(written, _)| written).sum::<u64>());
    assert_eq!((events.damage(), events.truncated_at()), (&[][..], None));
}

#[test]
fn addresses_of_different_sizes_are_refused() {
    let mut sizes = std::collections::BTreeMap::new();
    files::each(|recording| {
        let info = SliceReader::new(&recording.bytes).expect("a recording").info().expect("a header").clone();
        sizes.insert(info.pointer_size, info);
    });
    let mut infos: Vec<_> = sizes.into_values().collect();
    if infos.len() == 1 {
        let mut other = infos[0].clone();
        other.pointer_size = 12 - other.pointer_size;
        infos.push(other);
    }
    let refused = Merger::new(&infos, MergerOptions::default());
    assert!(matches!(refused, Err(Error::PointerSizes { .. })));
}

/// A runtime's header before V6 has a rate whether or not the runtime samples, and zero for unknown numbers.
#[test]
fn a_process_that_the_kernel_sampled_has_the_kernels_rate_and_all_else_of_its_runtime() {
    let mut runtime = None;
    files::each(|recording| {
        let info = SliceReader::new(&recording.bytes).expect("a recording").info().expect("a header").clone();
        runtime = runtime.take().or(Some(info).filter(|info| info.version == 4 && info.process_id.is_some()));
    });
    let mut runtime = runtime.expect("a recording of V4");
    runtime.frequency = 1_000_000_000;
    (runtime.processors, runtime.sampling_rate) = (Some(3), Some(1_000_000));
    let kernel = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let own = ("ProcessId".to_owned(), runtime.process_id.unwrap_or(0).to_string());
        let pairs = pairs.chain([own]).collect();
        TraceInfo::new_v6(
            runtime.start.unix_milliseconds().unwrap_or(0).cast_unsigned(),
            runtime.start_ticks,
            pairs,
        )
    };
    let of_kernel = kernel(&[
        ("HardwareThreadCount", "2"),
        ("ExpectedCPUSamplingRate", "10101010"),
        ("SystemPageSize", "4096"),
    ]);
    let merged = |infos: &[TraceInfo], options: &MergerOptions| {
        let merger = Merger::new(infos, options.clone().with_same_processes(true))
            .expect("headers that can be merged");
        let mut pairs = merger.info().key_values.clone();
        pairs.sort();
        pairs.retain(|(key, _)| key != "ProcessId");
        let values = pairs.into_iter().map(|(_, value)| value).collect::<Vec<_>>();
        (values, *merger.omissions() == Omissions::default())
    };
    let options = MergerOptions::default();
    let expected = |values: [&str; 3]| (values.map(str::to_owned).to_vec(), true);
    let both = [runtime.clone(), of_kernel.clone()];
    // By key: rate, processors, size of a page.
    assert_eq!(merged(&both, &options), expected(["10101010", "3", "4096"]));
    let reversed = [of_kernel.clone(), runtime.clone()];
    assert_eq!(merged(&reversed, &options), expected(["10101010", "2", "4096"]));
    let mut unknown = [runtime.clone(), of_kernel.clone()];
    unknown[0].processors = Some(0);
    assert_eq!(merged(&unknown, &options), expected(["10101010", "2", "4096"]));
    // A runtime that writes V6 may state a rate, too.
    let of_v6 = kernel(&[("ExpectedCPUSamplingRate", "1000000")]);
    let both = [of_v6, of_kernel];
    assert_eq!(merged(&both, &options), (vec!["2".to_owned(), "4096".to_owned()], false));
    let options = options.with_sampling_rate_of(1);
    assert_eq!(merged(&both, &options), expected(["10101010", "2", "4096"]));
    // The events that one recording requested may be missing from the others.
    let requested = kernel(&[(REQUESTED_EVENTS, "gc exceptions"), ("SystemPageSize", "4096")]);
    let both = [requested, both[1].clone()];
    assert_eq!(merged(&both, &options), expected(["10101010", "2", "4096"]));
    let options = options.with_requested_events("gc");
    let with_request = ["10101010", "2", "gc", "4096"].map(str::to_owned).to_vec();
    assert_eq!(merged(&both, &options), (with_request, true));
}

/// A runtime in a container states its id there.
#[test]
fn a_recording_can_be_given_its_process() {
    let recording = |process: u64| {
        let pairs = vec![("ProcessId".to_owned(), process.to_string())];
        let mut writer = EventWriter::new(&TraceInfo::new_v6(0, Ticks(0), pairs)).expect("a header");
        let kind = writer.define(&EventKind::new("Demo", 1, "Tick", &[])).expect("a kind");
        let thread = writer.thread(process, 8, None).expect("a thread");
        writer.event(kind, Ticks(process), thread, None, &[], &[]).expect("an event");
        writer.finish().expect("an end");
        writer.bytes().to_vec()
    };
    let files = [recording(4711), recording(1)];
    let infos = files
        .each_ref()
        .map(|file| SliceReader::new(file).expect("a recording").info().expect("a header").clone());
    let options =
        MergerOptions::default().with_same_processes(true).with_same_clock(true).with_process_of(1, 4711);
    let mut merger = Merger::new(&infos, options).expect("headers that can be merged");
    let readers = files.each_ref().map(|file| SliceReader::new(file).expect("a recording"));
    let mut order = MergeOrder::new(readers);
    while let Some((source, event)) = order.next(&merger).expect("an event") {
        merger.event(source, &event).expect("an event that can be written");
    }
    merger.finish(order.events().map(nettrace::Events::threads)).expect("an end");
    let mut events = SliceReader::new(merger.bytes()).expect("a recording");
    let mut processes = Vec::new();
    events.for_each(|event| processes.push(event.process_id())).expect("events");
    assert_eq!(processes, [Some(4711), Some(4711)]);
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

/// A recording in parts of a number of events. Each part begins in the middle of the recording and lacks an
/// end.
fn parts(bytes: &[u8], events_of_a_part: usize) -> Vec<Vec<u8>> {
    let mut events = SliceReader::new(bytes).expect("a recording");
    let info = events.info().expect("a header").clone();
    let mut parts = Vec::new();
    let mut part = Transcoder::new(Version::V4, &info).expect("a header that can be written");
    let mut count = 0;
    while let Some(record) = events.next_record().expect("a recording") {
        part.write(&record).expect("a record that can be written");
        count += usize::from(matches!(record, Record::Event(_)));
        if count == events_of_a_part {
            count = 0;
            part.flush().expect("a block that can be written");
            parts.push(part.bytes().to_vec());
            let mut next = Transcoder::new(Version::V4, &info).expect("a header that can be written");
            next.resume_after(&part, events.threads());
            part = next;
        }
    }
    part.finish(events.threads()).expect("an end that can be written");
    parts.push(part.bytes().to_vec());
    parts
}

#[test]
fn parts_that_are_joined_are_the_whole() {
    files::each(|recording| {
        if ![4, 5].contains(&version(&recording.bytes)) {
            return;
        }
        let parts = parts(&recording.bytes, 97);
        let mut joined: Option<(Transcoder, Vec<Thread>)> = None;
        for part in &parts {
            let mut events = SliceReader::new(part).expect("a recording");
            let info = events.info().expect("a header").clone();
            let mut out = match joined.take() {
                None => Transcoder::new(Version::V4, &info).expect("a header that can be written"),
                Some((mut out, threads)) => {
                    out.continue_with(&info, &threads).expect("a part that can be written");
                    out
                }
            };
            while let Some(record) = events.next_record().expect("a recording") {
                out.write(&record).expect("a record that can be written");
            }
            joined = Some((out, events.threads().to_vec()));
        }
        let (mut out, threads) = joined.expect("a part");
        out.finish(&threads).expect("an end that can be written");
        let expected = Expected { other_kinds: parts.len() > 1, ..Expected::default() };
        assert_equal(&recording.name, &recording.bytes, out.bytes(), expected);
    });
}
