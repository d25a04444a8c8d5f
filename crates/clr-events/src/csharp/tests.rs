use alloc::format;
use alloc::string::ToString as _;
use alloc::vec::Vec;

use super::*;

fn csharp(namespace: &str, name: &str, signature: &str, detail: Detail) -> String {
    let method = RuntimeName { namespace, name, signature };
    method.csharp(detail).map_or_else(|| "-".to_string(), |name| name.text)
}

#[track_caller]
fn check(namespace: &str, name: &str, signature: &str, expected: &str) {
    assert_eq!(csharp(namespace, name, signature, Detail::Short), expected);
}

#[test]
fn type_arguments_stand_with_the_type_that_has_them() {
    check(
        "System.Collections.Generic.List`1[System.__Canon]",
        "AddWithResize",
        "instance void  (!0)",
        "System.Collections.Generic.List<__Canon>.AddWithResize(__Canon)",
    );
    check(
        "System.Collections.Generic.Dictionary`2+KeyCollection+Enumerator[System.Int32,N.Outer+Inner]",
        "MoveNext",
        "instance bool  ()",
        "System.Collections.Generic.Dictionary<int, Outer.Inner>.KeyCollection.Enumerator.MoveNext()",
    );
    check(
        "N.Outer`1+Nested`2[System.String,System.Byte[],N.Pair`2[System.Int64,System.Char[,]]]",
        "M",
        "instance !2  (!0,!1)",
        "N.Outer<string>.Nested<byte[], Pair<long, char[,]>>.M(string, byte[])",
    );
    check(
        "System.Collections.Generic.Dictionary`2[System.__Canon,System.__Canon]",
        "Keys",
        "instance class KeyCollection<!0,!1>  (class Entry<!0,!1>&)",
        "System.Collections.Generic.Dictionary<__Canon, __Canon>.Keys(ref Entry<__Canon, __Canon>)",
    );
    check("N.Open`1", "M", "instance void  (!0)", "N.Open<T>.M(T)");
    check("N.Open`2+In", "M", "void  (!0,!1[])", "N.Open<T1, T2>.In.M(T1, T2[])");
    check("N.Box`1[[System.String, System.Private.CoreLib]]", "M", "void  ()", "N.Box<string>.M()");
    check("System.Int32[,]", "Get", "instance int32  (int32,int32)", "System.Int32[,].Get(int, int)");
    check("", "Main", "void  (class System.String[])", "Main(string[])");
}

#[test]
fn generic_methods_have_the_parameters_that_their_signature_uses() {
    check(
        "System.Array",
        "Sort",
        "generic void  (!!0[],int32,int32,class System.Collections.Generic.IComparer`1<!!0>)",
        "System.Array.Sort<T>(T[], int, int, IComparer<T>)",
    );
    check(
        "System.Linq.Enumerable",
        "Select",
        "generic class System.Collections.Generic.IEnumerable`1<!!1>  (class System.Func`2<!!0,!!1>)",
        "System.Linq.Enumerable.Select<T1, T2>(Func<T1, T2>)",
    );
    check("System.Activator", "CreateInstance", "generic !!0  ()", "System.Activator.CreateInstance<T>()");
    check(
        "Parked+Box`1[System.__Canon]",
        "Wait",
        "instance generic void  (!0,!!0,int32&,int32[])",
        "Parked.Box<__Canon>.Wait<T>(__Canon, T, ref int, int[])",
    );
}

#[test]
fn parameters_are_csharp_types() {
    for (runtime, expected) in [
        ("bool,wchar,int8,unsigned int8,int16,unsigned int16", "bool, char, sbyte, byte, short, ushort"),
        ("int32,unsigned int32,int64,unsigned int64,int,unsigned int", "int, uint, long, ulong, nint, nuint"),
        ("float32,float64,class System.Object,class System.String", "float, double, object, string"),
        (
            "value class System.Decimal,refany,void*,unsigned int8*&",
            "decimal, TypedReference, void*, ref byte*",
        ),
        ("int32[],int32[,],int32[,,][],int32[][,],int32*[]", "int[], int[,], int[][,,], int[,][], int*[]"),
        (
            "value class System.Nullable`1<int32>,value class System.Nullable`1<value class N.E>[]",
            "int?, E?[]",
        ),
        ("value class System.ValueTuple`2<int32,class N.A>", "ValueTuple<int, A>"),
        ("required_modifier System.Runtime.InteropServices.InAttribute value class N.S&", "ref S"),
        ("fnptr void(unsigned int8*,int32),int32", "delegate*<byte*, int, void>, int"),
        ("fnptr class System.Object(void*)&", "ref delegate*<void*, object>"),
        ("fnptr unmanaged cdecl int32()", "delegate* unmanaged[Cdecl]<int>"),
        ("class System.Object,...,int32", "object, __arglist, int"),
        ("class System.Object,pMT: 0x7f752a6b4558<class System.Object>", "object, ?<object>"),
        ("class [System.Runtime]System.Uri, valuetype N.S, native int", "Uri, S, nint"),
        ("class <>f__AnonymousType0`2<int32,class System.String>", "<>f__AnonymousType0<int, string>"),
        ("value class <Round>d__7&,class <>c", "ref <Round>d__7, <>c"),
    ] {
        check("C", "M", &format!("void  ({runtime})"), &format!("C.M({expected})"));
    }
    assert_eq!(
        csharp("C", "M", "instance class A.B  (class A.B,class C.D`1<class E.F>)", Detail::Qualified),
        "C.M(A.B, C.D<E.F>)"
    );
}

#[test]
fn members_are_named_as_in_source_files() {
    check("N.Type", ".ctor", "instance void  (int32)", "N.Type..ctor(int)");
    check("N.Type", ".cctor", "void  ()", "N.Type..cctor()");
    check("System.String", "get_Length", "instance int32  ()", "System.String.Length.get()");
    check("N.Type", "set_Item", "instance void  (int32,int64)", "N.Type.Item.set(int, long)");
    check(
        "N.Type",
        "add_Changed",
        "instance void  (class System.EventHandler)",
        "N.Type.Changed.add(EventHandler)",
    );
    check("N.Type", "get_", "instance void  ()", "N.Type.get_()");
    check(
        "System.Type",
        "op_Inequality",
        "bool  (class System.Type,class System.Type)",
        "System.Type.operator !=(Type, Type)",
    );
    check("N.Id", "op_Implicit", "int32  (value class N.Id)", "N.Id.implicit operator int(Id)");
    check("N.Id", "op_CheckedAddition", "int32  (int32,int32)", "N.Id.operator checked +(int, int)");
    check(
        "System.Int32",
        "System.Numerics.ISubtractionOperators<System.Int32,System.Int32,System.Int32>.op_Subtraction",
        "int32  (int32,int32)",
        "System.Int32.ISubtractionOperators<int, int, int>.operator -(int, int)",
    );
    check(
        "N.Items",
        "System.Collections.Generic.IEnumerator<System.Globalization.CultureInfo>.get_Current",
        "instance class System.Globalization.CultureInfo  ()",
        "N.Items.IEnumerator<CultureInfo>.Current.get()",
    );
    // Code that programs generate while they run can have any name.
    check(
        "dynamicClass",
        "InvokeStub_Outer.get_Pair",
        "void  ()",
        "dynamicClass.InvokeStub_Outer.get_Pair()",
    );
}

/// The names of the testdata program, by Roslyn and by mcs, and its source's declarations.
#[test]
fn compiler_made_methods_stand_below_the_method_they_were_written_in() {
    for (namespace, name, signature, expected) in [
        ("Program+<Round>d__7", "MoveNext", "instance void  ()", "Program.Round [async]"),
        ("Program+<Round>c__async7", "MoveNext", "instance void  ()", "Program.Round [async]"),
        ("Program+<Items>d__3", "MoveNext", "instance bool  ()", "Program.Items [iterator]"),
        ("Program+<Items>c__Iterator0", "MoveNext", "instance bool  ()", "Program.Items [iterator]"),
        (
            "N.C`1+<Get>d__7`1[System.Int32,System.__Canon]",
            "MoveNext",
            "instance void  ()",
            "N.C<int>.Get<__Canon> [async]",
        ),
        ("Program+<<Main>$>d__0", "MoveNext", "instance void  ()", "Program.<Main>$ [async]"),
        (
            "N.C+<N-I<System.Int32,System.Byte>-Get>d__1",
            "MoveNext",
            "instance bool  ()",
            "N.C.N-I<System.Int32,System.Byte>-Get [iterator]",
        ),
        ("Program+<>c", "<Main>b__0_1", "instance void  (int32)", "Program.Main.AnonymousMethod__0_1(int)"),
        (
            "Program+<>c__DisplayClass3_0",
            "<Main>b__1",
            "instance void  ()",
            "Program.Main.AnonymousMethod__3_1()",
        ),
        (
            "M+<>c__DisplayClass37_0`1[System.Int32]",
            "<Make>b__0",
            "instance void  ()",
            "M.Make<int>.AnonymousMethod__37_0()",
        ),
        (
            "M+<>c__5`1[System.__Canon]",
            "<Make>b__5_0",
            "instance void  (!0)",
            "M.Make<__Canon>.AnonymousMethod__5_0(__Canon)",
        ),
        ("Task+<>c", "<.cctor>b__288_0", "instance void  ()", "Task..cctor.AnonymousMethod__288_0()"),
        (
            "System.Console+<>c",
            "<get_Out>b__26_0",
            "instance void  ()",
            "System.Console.Out.get.AnonymousMethod__26_0()",
        ),
        (
            "Program+<Round>c__AnonStorey5",
            "<>m__0",
            "instance void  ()",
            "Program.Round.AnonymousMethod__5_0()",
        ),
        ("Program+<Queue>c__async5", "<>m__0", "void  ()", "Program.Queue.AnonymousMethod__0()"),
        ("Program", "<Main>m__0", "void  ()", "Program.Main.AnonymousMethod__0()"),
        ("Program", "<Main>g__Local|0_0", "int32  (int32)", "Program.Main.Local(int)"),
        ("Program+<>c__DisplayClass1_0", "<Run>g__Go|0", "instance void  ()", "Program.Run.Go()"),
        ("Program", "<<Main>$>g__Fib|0_0", "int32  (int32)", "Program.<Main>$.Fib(int)"),
        (
            "Program+<>c+<<Main>b__0_1>d",
            "MoveNext",
            "instance void  ()",
            "Program.Main.AnonymousMethod__0_1 [async]",
        ),
        ("Program+<<Main>g__Local|0_0>d", "MoveNext", "instance void  ()", "Program.Main.Local [async]"),
        (
            "Program+<Round>d__7",
            "SetStateMachine",
            "instance void  ()",
            "Program.<Round>d__7.SetStateMachine()",
        ),
        ("Program", "<Main>", "void  ()", "Program.<Main>()"),
        (
            "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1[System.Int32,Program+<Round>d__7]",
            "MoveNext",
            "instance void  (class System.Threading.Thread)",
            "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<int>.AsyncStateMachineBox<Program.<Round>d__7>.MoveNext(Thread)",
        ),
    ] {
        check(namespace, name, signature, expected);
    }
    let qualified = |namespace, name, signature| csharp(namespace, name, signature, Detail::Qualified);
    assert_eq!(
        qualified("Program+<Round>d__7", "MoveNext", "instance void  ()"),
        "Program.Round [async d__7]"
    );
    assert_eq!(qualified("Program", "<Main>g__F|0_1", "void  ()"), "Program.Main.F|0_1()");
    assert_eq!(async_method("A.B`1+<Get>d__2[System.Int32]").as_deref(), Some("A.B<int>.Get"));
    assert_eq!(async_method("A.B+<>c"), None);
}

#[test]
fn types_of_events() {
    for (runtime, expected) in [
        ("System.String", "string"),
        ("System.Byte[][,]", "byte[,][]"),
        ("System.Nullable`1[System.Int32]", "int?"),
        (
            "System.Collections.Generic.Dictionary`2+Entry[System.__Canon,System.Int32][]",
            "System.Collections.Generic.Dictionary<__Canon, int>.Entry[]",
        ),
        ("System.Func`1", "System.Func<>"),
        ("N.My\\+Type", "N.My+Type"),
    ] {
        assert_eq!(type_name(runtime).as_deref(), Some(expected));
    }
    for hostile in ["", "A`", "A`1[", "A`1[B", "A`99999999", "A]", "+", "A+", "`1"] {
        assert_eq!(type_name(hostile), None, "{hostile}");
    }
}

#[test]
fn malformed_names_have_no_csharp_form() {
    for (namespace, name, signature) in [
        ("N.C", "M", "instance void  ("),
        ("N.C", "M", "instance void  (int32"),
        ("N.C", "M", "instance void  (int32,)"),
        ("N.C", "M", "instance void  (!0)"),
        ("N.C", "M", "instance void  (!!99999999999999999999)"),
        ("N.C", "M", "generic void  (!!65)"),
        ("N.C", "M", "instance void  (class )"),
        ("N.C", "M", "void  (int32)x"),
        ("N.C`1[System.Int32", "M", "void  ()"),
        ("N.C`2[System.Int32]", "M", "void  ()"),
        ("N.C]", "M", "void  ()"),
        ("+<A>d__1", "MoveNext", "instance void  ()"),
        ("<A", "M", "void  ()"),
        ("C+<>c", "<>b__0_0", "void  ()"),
        ("", "", "void  ()"),
        ("", "", "\u{109}"),
        ("dynamicClass", "", "void  ()"),
    ] {
        assert_eq!(csharp(namespace, name, signature, Detail::Short), "-", "{namespace} {name} {signature}");
    }
    let deep = |open: &str, close: &str| {
        let signature = format!("void  ({}int32{})", open.repeat(10_000), close.repeat(10_000));
        csharp("C", "M", &signature, Detail::Short)
    };
    assert_eq!(deep("class A`1<", ">"), "-");
    assert_eq!(deep("fnptr ", "()"), "-");
    assert_eq!(deep("required_modifier ", ""), "-");
    let nested = format!("{}M{}", "<".repeat(30_000), ">b__0".repeat(30_000));
    assert_eq!(csharp("C", &nested, "void  ()", Detail::Short), "-");
}

/// Each of these would take hours if each byte required a look at all others.
#[test]
fn time_is_linear_in_the_length() {
    let many = |text: &str| text.repeat((1 << 16) / text.len());
    let argument = format!("C`1[{}X]", many("a."));
    let arguments: Vec<String> = [
        "!0,", "[", "[]", "<", "&", "*", "\\", "a.", "!!0,", "`1", "+<", "class A,", "fnptr ", "[[", "(",
        "A`1<", "A`1[",
    ]
    .iter()
    .map(|text| many(text))
    .collect();
    for text in &arguments {
        for namespace in ["C", &argument, text] {
            for name in ["M", "MoveNext", text] {
                let signature = format!("instance void  ({text}int32)");
                let written = csharp(namespace, name, &signature, Detail::Short);
                assert!(written.len() <= 4096 + 16, "{}", written.len());
            }
        }
    }
}
