// A program with types that are made in memory, whose names, fields and methods are known, for tests of
// `dump analyze`. Built with: mcs -langversion:7.2 -out:made.dll made.cs
//
// Another one, with static fields, can be unloaded.
//
// "made.dll" makes them, calls a method of one of them, which writes "ready" and waits for a line.
//
// made10.dll is the same program for the assemblies of the single file of .NET 10.0.5, which were trimmed:
// it takes the place of azmcp.dll there. Built with these assemblies in the folder of the command:
// mcs -langversion:7.2 -define:TRIMMED -nostdlib -noconfig -out:made10.dll
//   -r:System.Private.CoreLib.dll -r:System.Runtime.dll -r:System.Console.dll made.cs
using System;
using System.Reflection;
using System.Reflection.Emit;

public static class Program {
    static object[] made = new object[4];

    public static void Wait() {
        Console.WriteLine("ready");
        Console.ReadLine();
    }

    static void Set(object of, string field, object value) { of.GetType().GetField(field).SetValue(of, value); }

    static MethodBuilder Method(TypeBuilder of, string name, MethodInfo calls) {
        var method = of.DefineMethod(name, MethodAttributes.Public | MethodAttributes.Static, typeof(void), Type.EmptyTypes);
        var code = method.GetILGenerator();
        if (calls != null) code.Emit(OpCodes.Call, calls);
        code.Emit(OpCodes.Ret);
        return method;
    }

#if !TRIMMED
    static object MakeUnloadable() {
        var assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Unloadable"), AssemblyBuilderAccess.RunAndCollect);
        var type = assembly.DefineDynamicModule("Unloadable").DefineType("Unloadable.Type", TypeAttributes.Public);
        var values = new object[] { "a kept text", 21, 22L, (byte)23, new Guid(24, 0, 0, new byte[8]), null };
        for (int index = 0; index < values.Length; index++) {
            var of = values[index] == null ? typeof(string) : values[index].GetType();
            type.DefineField("Field" + index, of, FieldAttributes.Public | FieldAttributes.Static);
        }
        var made = type.CreateType();
        for (int index = 0; index < values.Length; index++) made.GetField("Field" + index).SetValue(null, values[index]);
        return Activator.CreateInstance(made);
    }
#endif

    static void Main() {
#if !TRIMMED
        made[3] = MakeUnloadable();
#endif
        var assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Made"), AssemblyBuilderAccess.Run);
        var module = assembly.DefineDynamicModule("Made");
        // Fields and methods of three types by turns: the metadata has tables that bring them into order.
        var first = module.DefineType("Made.First", TypeAttributes.Public);
        var second = module.DefineType("Made.Second", TypeAttributes.Public);
#if TRIMMED
        var nested = module.DefineType("Made.Third", TypeAttributes.Public);
#else
        var nested = first.DefineNestedType("Inner", TypeAttributes.NestedPublic);
#endif
        first.DefineField("Number", typeof(int), FieldAttributes.Public);
        second.DefineField("Text", typeof(string), FieldAttributes.Public);
        nested.DefineField("Ratio", typeof(double), FieldAttributes.Public);
        first.DefineField("Label", typeof(string), FieldAttributes.Public);
        second.DefineField("Shared", typeof(int), FieldAttributes.Public | FieldAttributes.Static);
        second.DefineField("Count", typeof(long), FieldAttributes.Public);
        Method(first, "Unused", null);
        var runs = Method(second, "Runs", typeof(Program).GetMethod("Wait"));
        Method(nested, "Unused", null);
        Method(first, "Calls", runs);
        var types = new[] { first.CreateType(), second.CreateType(), nested.CreateType() };
        for (int index = 0; index < types.Length; index++) made[index] = Activator.CreateInstance(types[index]);
        Set(made[0], "Number", 11);
        Set(made[0], "Label", "a label");
        Set(made[1], "Text", "a text");
        Set(made[1], "Count", 12L);
        Set(made[2], "Ratio", 0.5);
        types[1].GetField("Shared").SetValue(null, 13);
        types[0].GetMethod("Calls").Invoke(null, null);
    }
}
