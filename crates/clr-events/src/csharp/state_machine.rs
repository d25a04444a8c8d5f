//! State machines: the types that compilers make of `async` methods and iterators.

use crate::csharp::generated_name::GeneratedName;

/// The state machine of an `async` method, lambda or local function, or of an iterator, by the name that the
/// runtime gives to its type.
///
/// ```
/// use clr_events::csharp::StateMachine;
///
/// let machine = StateMachine::of_method("Shop.Cart+<PayAsync>d__7.MoveNext()").expect("a state machine");
/// assert!(machine.is_entered_by("Shop.Cart.PayAsync(int32)"));
/// assert!(!machine.is_entered_by("Shop.Cart.PayAsyncCore(int32)"));
/// assert_eq!(StateMachine::of_method("Shop.Cart.MoveNext()"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateMachine<'n> {
    /// The whole type.
    whole: &'n str,
    /// The type around it: `Shop.Cart`.
    declaring: &'n str,
    /// The method that it is made of: `PayAsync`.
    method: &'n str,
}

impl<'n> StateMachine<'n> {
    /// Returns the state machine that a method with its parameters is the body of; `None` for all other
    /// methods. Linear in the length of the name.
    pub fn of_method(method: &'n str) -> Option<Self> {
        let whole = method.strip_suffix(".MoveNext()")?;
        let name = whole.split_once('[').map_or(whole, |(name, _)| name);
        let (declaring, _) = name.rsplit_once("+<")?;
        let own = name.get(declaring.len().checked_add(1)?..)?;
        let own = own.split_once('`').map_or(own, |(own, _)| own);
        match GeneratedName::parse(own)? {
            GeneratedName::StateMachine { of, .. } => Some(Self { whole, declaring, method: of }),
            _ => None,
        }
    }

    /// Returns true if a method with its parameters does nothing but start the state machine: the method that
    /// was written, or the `MoveNextAsync` of an `async` iterator.
    pub fn is_entered_by(&self, method: &str) -> bool {
        if let Some(own) = method.strip_prefix(self.whole).and_then(|rest| rest.strip_prefix('.')) {
            return own.ends_with("MoveNextAsync()");
        }
        let Some(rest) = method.strip_prefix(self.declaring) else { return false };
        let rest = if rest.starts_with('[') { after_brackets(rest) } else { rest };
        let Some(name) = rest.strip_prefix('.').and_then(|rest| rest.get(..self.method.len())) else {
            return false;
        };
        // The type has the dots of an explicitly implemented method as dashes.
        let is_same = name.bytes().zip(self.method.bytes()).all(|(a, b)| a == b || (a, b) == (b'.', b'-'));
        let after = rest.get(self.method.len().saturating_add(1)..);
        is_same && after.is_some_and(|after| after.is_empty() || after.starts_with(['(', '[']))
    }
}

/// The rest of a string after the brackets that it begins with.
fn after_brackets(text: &str) -> &str {
    let mut depth = 0_u32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth = depth.saturating_add(1),
            b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return text.get(at.saturating_add(1)..).unwrap_or_default();
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_enters_its_own_state_machine() {
        for (body, method) in [
            ("Program+<Round>d__7.MoveNext()", "Program.Round(int32)"),
            ("Program+<Handle>c__async0.MoveNext()", "Program.Handle(int32,class System.String,int32)"),
            ("N.C`1+<Get>d__2[System.__Canon].MoveNext()", "N.C`1[System.__Canon].Get(!0)"),
            ("N.C+<Get>d__2`1[System.Int32].MoveNext()", "N.C.Get(!!0)"),
            ("Program+<<Main>$>d__0.MoveNext()", "Program.<Main>$(class System.String[])"),
            ("Program+<>c+<<Main>b__0_1>d.MoveNext()", "Program+<>c.<Main>b__0_1()"),
            ("P+<>c__DisplayClass3_0+<<M>b__1>d.MoveNext()", "P+<>c__DisplayClass3_0.<M>b__1()"),
            ("Program+<<Main>g__Local|0_0>d.MoveNext()", "Program.<Main>g__Local|0_0(int32)"),
            (
                "N.C+<System-IAsyncDisposable-DisposeAsync>d__1.MoveNext()",
                "N.C.System.IAsyncDisposable.DisposeAsync()",
            ),
            (
                "P+<Items>d__3.MoveNext()",
                "P+<Items>d__3.System.Collections.Generic.IAsyncEnumerator<System.Int32>.MoveNextAsync()",
            ),
        ] {
            let machine = StateMachine::of_method(body);
            assert!(machine.is_some_and(|machine| machine.is_entered_by(method)), "{body} {method}");
            for other in
                ["Program.Main()", "Program.RoundTrip(int32)", "", body, "Program+<>c.<Main>b__0_10()"]
            {
                assert!(!machine.unwrap().is_entered_by(other), "{body} {other}");
            }
        }
    }

    #[test]
    fn other_methods_are_not_state_machine_bodies() {
        for method in [
            "",
            ".MoveNext()",
            "Program+<Round>d__7.SetStateMachine()",
            "N.List`1+Enumerator[System.Int32].MoveNext()",
            "Program+<>c.MoveNext()",
            "Program+<.MoveNext()",
            "Program+<>d__1.MoveNext()",
            "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1[A,P+<R>d__7].MoveNext()",
        ] {
            assert_eq!(StateMachine::of_method(method), None, "{method}");
        }
        let hostile = format!("A+<B>d__1[{}.MoveNext()", "[".repeat(1 << 16));
        let machine = StateMachine::of_method(&hostile).unwrap();
        assert!(!machine.is_entered_by(&format!("A{}", "[".repeat(1 << 16))));
    }
}
