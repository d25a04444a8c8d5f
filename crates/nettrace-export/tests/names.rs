//! Names in C#: as shown, as patterns match them, as JSON has them.

use nettrace::SliceReader;
use nettrace_export::{FrameId, Metric, NameForm, Options, Pattern, Profile, ProfileBuilder, StackFilter};
use nettrace_synth::clr::{MANAGED, Method, Recording};

/// Namespace, name and signature, then the names in both forms.
const METHODS: [(&str, &str, &str, &str, &str); 10] = [
    ("N.C`1[System.Int32]", "Add", "instance void  (!0)", "N.C`1[System.Int32].Add(!0)", "N.C<int>.Add(int)"),
    // Methods that differ by no more than a namespace.
    ("N.C", "Over", "void  (class A.X)", "N.C.Over(class A.X)", "N.C.Over(A.X)"),
    ("N.C", "Over", "void  (class B.X)", "N.C.Over(class B.X)", "N.C.Over(B.X)"),
    ("N.C", "Under", "void  (class B.X)", "N.C.Under(class B.X)", "N.C.Under(X)"),
    // Overloads: bodies lack their parameters.
    ("N.C+<Run>d__7", "MoveNext", "instance void  ()", "N.C+<Run>d__7.MoveNext()", "N.C.Run [async d__7]"),
    ("N.C+<Run>d__8", "MoveNext", "instance void  ()", "N.C+<Run>d__8.MoveNext()", "N.C.Run [async d__8]"),
    ("N.C+<Go>d__9", "MoveNext", "instance void  ()", "N.C+<Go>d__9.MoveNext()", "N.C.Go [async]"),
    // Types in memory: their addresses differ in each process.
    (
        "dynamicClass",
        "Stub",
        "void  (pMT: 0x7f01<int32>,pMT: 00007F48E79F0D10)",
        "dynamicClass.Stub(pMT<int32>,pMT)",
        "dynamicClass.Stub(?<int>, ?)",
    ),
    ("dynamicClass", "Other", "void  (pMT: 0x2)", "dynamicClass.Other(pMT)", "dynamicClass.Other(?)"),
    ("N.C", "Odd", "void  (!7)", "N.C.Odd(!7)", "N.C.Odd(!7)"),
];

/// A thread that spends a microsecond in each method.
fn recording() -> Vec<u8> {
    let address = |index: usize| 0x1000 * (index as u64 + 1);
    let mut recording = Recording::new();
    recording.thread(7).at(1);
    for (index, (namespace, name, signature, _, _)) in METHODS.iter().enumerate() {
        recording.stacks(&[&[address(index) + 8]]);
        recording.method(&Method { signature, ..Method::new(address(index), namespace, name) });
    }
    for (time, stack) in (1..).zip((1..).take(METHODS.len() + 1)) {
        recording.at(time * 1000).sample(stack.min(10), MANAGED);
    }
    recording.bytes()
}

fn profile(options: Options) -> Profile {
    let recording = recording();
    let mut builder = ProfileBuilder::new(options.with_kinds(false));
    let mut events = SliceReader::new(&recording).expect("a recording").in_time_order();
    events.for_each(|event| builder.add(&event)).expect("bytes in memory");
    builder.finish(events.events().info()).expect("time order").0
}

fn csharp() -> Options {
    Options::new(Metric::Wall).with_names(NameForm::CSharp)
}

#[test]
fn methods_of_a_profile_have_different_names() {
    let full = profile(Options::new(Metric::Wall));
    let csharp = profile(csharp());
    for (index, (_, _, _, runtime, expected)) in (0..).zip(METHODS) {
        let id = FrameId(index);
        assert_eq!(full.frames.name(id), format!("?!{runtime}"));
        assert_eq!(
            (csharp.frames.full_name(id), csharp.frames.name(id)),
            (full.frames.name(id), &*format!("?!{expected}"))
        );
    }
    assert_eq!(csharp.stack_totals, full.stack_totals);
}

#[test]
fn patterns_match_names_of_both_forms() {
    for names in [NameForm::Full, NameForm::CSharp] {
        for (pattern, microseconds) in [
            ("N.C<int>.Add(int)", 1),
            ("N.C`1[System.Int32].Add(!0)", 1),
            ("Over(X)", 2),
            ("Over(A.X)", 1),
            ("Over(class A.X)$", 1),
            ("C.Run [async", 2),
            ("d__7", 1),
            ("MoveNext", 3),
            ("Nothing", 0),
        ] {
            let patterns = vec![Pattern::new(pattern)];
            let roots = StackFilter::default().with_roots(patterns.clone());
            let hidden = StackFilter::default().with_hidden(patterns);
            let options = csharp().with_names(names);
            assert_eq!(profile(options.clone().with_filter(roots)).total(), microseconds * 1000, "{pattern}");
            let without = profile(options.with_filter(hidden));
            let unnamed: u64 = without.exclusive().first().copied().unwrap_or_default();
            assert_eq!(unnamed, microseconds * 1000, "{pattern}");
        }
    }
}

#[test]
fn frames_know_their_async_method() {
    let profile = profile(Options::new(Metric::Wall));
    let methods: Vec<_> =
        profile.frames.iter().map(|(id, _)| profile.frames.state_machine_method(id)).collect();
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(methods[3..8], [None, named("?!N.C.Run"), named("?!N.C.Run"), named("?!N.C.Go"), None]);
}
