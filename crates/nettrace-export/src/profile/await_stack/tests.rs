use super::*;

const BOX: &str = "System.Private.CoreLib!System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1[System.Threading.Tasks.VoidTaskResult,Program+<Activity>d__6]";
const CORE: &str = "System.Private.CoreLib!System.";

/// Folds a stack, root first: `~` stands for the core library, `BOX` for the box of a state machine.
fn fold(stack: &str) -> (String, bool) {
    let names: Vec<String> = stack
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| line.replace('~', CORE).replace("BOX", BOX))
        .collect();
    let split = |index: usize| names[index].split_once('!').unwrap_or(("", &names[index]));
    let role = |index| (index, AwaitFrame::of(split(index).0, split(index).1));
    let roles: Vec<_> = (0..names.len()).rev().map(role).collect();
    let folded = AwaitStack::fold(&roles, |index| split(index).1);
    let frames: Vec<_> = folded.frames.iter().map(|frame| split(*frame).1.replace("System.", "")).collect();
    (frames.join(" > "), folded.is_continued)
}

const START: &str = "~Runtime.CompilerServices.AsyncTaskMethodBuilder.Start(!!0&)
    ~Runtime.CompilerServices.AsyncMethodBuilderCore.Start(!!0&)";
const POOL: &str = "~Threading.Thread.StartCallback()
    ~Threading.PortableThreadPool+WorkerThread.WorkerThreadStart()
    ~Threading.ThreadPoolWorkQueue.Dispatch()";
const CONTINUED: &str = "BOX.MoveNext()
    BOX.MoveNext(class System.Threading.Thread)
    ~Threading.ExecutionContext.RunInternal(class System.Threading.ExecutionContext,class System.Threading.ContextCallback,class System.Object)
    BOX.ExecutionContextCallback(class System.Object)";
const COMPLETES: &str = "~Runtime.CompilerServices.AsyncTaskMethodBuilder`1[System.Threading.Tasks.VoidTaskResult].SetExistingTaskResult(class System.Threading.Tasks.Task`1<!0>,!0)
    ~Threading.Tasks.Task`1[System.Threading.Tasks.VoidTaskResult].TrySetResult(!0)
    ~Threading.Tasks.Task.RunContinuations(class System.Object)
    ~Threading.Tasks.AwaitTaskContinuation.RunOrScheduleAction(class System.Action,bool)
    ~Runtime.CompilerServices.TaskAwaiter+<>c.<OutputWaitEtwEvents>b__12_0(class System.Action,class System.Threading.Tasks.Task)";

/// The stacks are from a recording of .NET 10, `net10-all`.
#[test]
fn an_async_method_is_one_frame_and_its_continuation_begins_a_stack() {
    let activity = "workload!Program+<Activity>d__6.MoveNext()";
    let folded = "Program+<Activity>d__6.MoveNext()";
    let called = format!("workload!Program.Activity(int32)\n{START}\n{activity}");
    assert_eq!(
        fold(&format!("workload!Program.Main()\n{called}")),
        (format!("Program.Main() > {folded}"), false)
    );
    let yielded = format!(
        "{POOL}\n~Runtime.CompilerServices.YieldAwaitable+YieldAwaiter+<>c.<OutputCorrelationEtwEvent>b__6_0(class System.Action)\n{CONTINUED}\n{activity}"
    );
    assert_eq!(fold(&yielded), (folded.to_owned(), true));
    assert_eq!(fold(&format!("{yielded}\n{called}")), (format!("{folded} > {folded}"), true));
    // The completed method is not a caller of its awaiter.
    let awaiting = format!("{yielded}\n{COMPLETES}\n{CONTINUED}\n{activity}\nworkload!Spin.Hot(int32)");
    assert_eq!(fold(&awaiting), (format!("{folded} > Spin.Hot(int32)"), true));
}

#[test]
fn the_leaf_of_a_stack_stays() {
    for (stack, expected) in [
        (POOL.to_owned(), POOL),
        (format!("{POOL}\n{CONTINUED}"), &*format!("{POOL}\n{CONTINUED}")),
        (
            format!("{POOL}\n{CONTINUED}\nM!P+<A>d__6.MoveNext()\n{COMPLETES}"),
            &*format!("M!P+<A>d__6.MoveNext()\n{COMPLETES}"),
        ),
        (format!("M!P.A()\n{START}"), &*format!("M!P.A()\n{START}")),
        (String::new(), ""),
        ("?!?".to_owned(), "?!?"),
    ] {
        let plain = expected.lines().map(|line| {
            let line = line.trim().replace('~', CORE).replace("BOX", BOX);
            line.split_once('!').map_or("", |(_, method)| method).replace("System.", "")
        });
        let plain: Vec<_> = plain.collect();
        assert_eq!(fold(&stack).0, plain.join(" > "), "{stack}");
    }
}

#[test]
fn only_frames_that_run_a_body_are_removed() {
    for (stack, expected) in [
        // The method that was written was compiled into its caller.
        (format!("M!P.Main()\n{START}\nM!P+<A>d__6.MoveNext()"), "P.Main() > P+<A>d__6.MoveNext()"),
        // Overloads of other names are callers.
        ("M!P.AB()\nM!P+<A>d__6.MoveNext()".to_owned(), "P.AB() > P+<A>d__6.MoveNext()"),
        // A stub between the method and the builder.
        (format!("M!P.A()\n{START}\n?!?\nM!P+<A>d__6.MoveNext()"), "P+<A>d__6.MoveNext()"),
        // Elements of an iterator are awaited by the class library.
        (
            "M!P.Main()\n~Threading.Tasks.Task.WhenAll(class System.Collections.Generic.IEnumerable`1<!!0>)\nM!P+<Items>d__2.MoveNext()"
                .to_owned(),
            "P.Main() > P+<Items>d__2.MoveNext()",
        ),
        // An async iterator.
        (
            "M!P.Main()\nM!P+<Items>d__3.System.Collections.Generic.IAsyncEnumerator<System.Int32>.MoveNextAsync()\n~Runtime.CompilerServices.AsyncIteratorMethodBuilder.MoveNext(!!0&)\nM!P+<Items>d__3.MoveNext()"
                .to_owned(),
            "P.Main() > P+<Items>d__3.MoveNext()",
        ),
        // A wait for a task is not plumbing, nor are other threads, nor methods of the same name elsewhere.
        (
            "~Threading.Thread.StartCallback()\nM!P.Main()\n~Threading.Tasks.Task.Wait()\n~Threading.Monitor.Wait(class A)"
                .to_owned(),
            "Threading.Thread.StartCallback() > P.Main() > Threading.Tasks.Task.Wait() > Threading.Monitor.Wait(class A)",
        ),
        (
            format!("{POOL}\n~Threading.Tasks.Task.InnerInvoke()\nM!P+<>c.<Main>b__0_0()"),
            "P+<>c.<Main>b__0_0()",
        ),
        (
            "M!System.Threading.ThreadPoolWorkQueue.Dispatch()\nM!P.Main()".to_owned(),
            "Threading.ThreadPoolWorkQueue.Dispatch() > P.Main()",
        ),
    ] {
        assert_eq!(fold(&stack), (expected.to_owned(), false), "{stack}");
    }
}
