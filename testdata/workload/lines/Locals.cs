using System; using System.IO; using System.Reflection.Metadata; using System.Reflection.Metadata.Ecma335;
// What System.Reflection.Metadata finds in a portable PDB: every local variable of every method, with its scope.
static class Locals { static void Main(string[] arguments) {
  using (var provider = MetadataReaderProvider.FromPortablePdbStream(File.OpenRead(arguments[0]))) {
  var reader = provider.GetMetadataReader();
  foreach (var handle in reader.LocalScopes) {
    var scope = reader.GetLocalScope(handle);
    foreach (var local in scope.GetLocalVariables()) {
      var variable = reader.GetLocalVariable(local);
      Console.WriteLine(string.Format("{0:x8} {1} {2}..{3} {4} {5}", MetadataTokens.GetToken(scope.Method), variable.Index,
        scope.StartOffset, scope.EndOffset, variable.Attributes, reader.GetString(variable.Name)));
    } } } } }
