// Writes the portable PDB of an assembly that mcs -debug compiled: Portable IN.exe (with IN.exe.mdb) OUT.dll. Variables named
// `shared…` of one type and method get one slot, as an optimising compiler gives to variables of scopes that do not overlap.
// Built with: mcs -r:/usr/lib/mono/gac/Mono.Cecil/0.11.0.0__0738eb9f132ed756/Mono.Cecil.dll -r:Mono.CompilerServices.SymbolWriter Portable.cs
using System; using System.Collections.Generic; using System.IO; using System.Linq; using Mono.Cecil; using Mono.Cecil.Cil;
using Mono.CompilerServices.SymbolWriter;
static class Portable
{
    static void Main(string[] arguments)
    {
        var module = ModuleDefinition.ReadModule(arguments[0]);
        var symbols = MonoSymbolFile.ReadSymbolFile(arguments[0] + ".mdb");
        var documents = new Dictionary<string, Document>();
        foreach (var method in module.GetTypes().SelectMany(type => type.Methods).Where(method => method.HasBody))
        {
            var entry = symbols.GetMethodByToken(method.MetadataToken.ToInt32());
            if (entry == null) continue;
            var body = method.Body; var debug = method.DebugInformation;
            Func<int, Instruction> at = offset => body.Instructions.FirstOrDefault(it => it.Offset >= offset);
            foreach (var line in entry.GetLineNumberTable().LineNumbers)
            {
                var instruction = at(line.Offset);
                if (instruction == null || debug.SequencePoints.Any(it => it.Offset == instruction.Offset)) continue;
                var name = "/_/" + Path.GetFileName(entry.CompileUnit.SourceFile.FileName);
                Document document;
                if (!documents.TryGetValue(name, out document)) documents[name] = document = new Document(name) { Language = DocumentLanguage.CSharp };
                debug.SequencePoints.Add(new SequencePoint(instruction, document)
                    { StartLine = line.Row, EndLine = line.Row, StartColumn = 1, EndColumn = 100 });
            }
            var blocks = entry.GetCodeBlocks();
            var scopes = new List<ScopeDebugInformation>();
            var whole = new ScopeDebugInformation(body.Instructions[0], null);
            foreach (var block in blocks)
            {
                var scope = new ScopeDebugInformation(at(block.StartOffset), at(block.EndOffset));
                scopes.Add(scope);
                (block.Parent >= 1 && block.Parent <= scopes.Count - 1 ? scopes[block.Parent - 1] : whole).Scopes.Add(scope);
            }
            debug.Scope = whole;
            var shared = new Dictionary<string, VariableDefinition>();
            foreach (var local in entry.GetLocals())
            {
                var variable = body.Variables[local.Index];
                VariableDefinition first;
                if (local.Name.StartsWith("shared"))
                {
                    if (!shared.TryGetValue(variable.VariableType.FullName, out first)) shared[variable.VariableType.FullName] = variable;
                    else
                    {
                        foreach (var instruction in body.Instructions) Redirect(instruction, variable, first);
                        variable = first;
                    }
                }
                var owner = local.BlockIndex >= 1 && local.BlockIndex <= scopes.Count ? scopes[local.BlockIndex - 1] : whole;
                owner.Variables.Add(new VariableDebugInformation(variable, local.Name));
            }
        }
        module.Write(arguments[1], new WriterParameters { SymbolWriterProvider = new PortablePdbWriterProvider(), WriteSymbols = true });
        // No folder of this machine is in it.
        var path = Path.ChangeExtension(Path.GetFullPath(arguments[1]), ".pdb");
        var file = File.ReadAllBytes(arguments[1]); var latin = System.Text.Encoding.GetEncoding(28591);
        var text = latin.GetString(file); var built = "/_/" + Path.GetFileName(path);
        File.WriteAllBytes(arguments[1], latin.GetBytes(text.Replace(path, built.PadRight(path.Length, '\0'))));
    }
    static void Redirect(Instruction instruction, VariableDefinition from, VariableDefinition to)
    {
        var code = instruction.OpCode.Code; int index = -1; bool load = false;
        if (instruction.Operand == from) { instruction.Operand = to; return; }
        if (code >= Code.Ldloc_0 && code <= Code.Ldloc_3) { index = code - Code.Ldloc_0; load = true; }
        if (code >= Code.Stloc_0 && code <= Code.Stloc_3) index = code - Code.Stloc_0;
        if (index != from.Index) return;
        instruction.OpCode = load ? OpCodes.Ldloc_S : OpCodes.Stloc_S; instruction.Operand = to;
    }
}
