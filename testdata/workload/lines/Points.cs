using System; using System.IO; using System.Reflection.Metadata; using System.Reflection.Metadata.Ecma335;
// What System.Reflection.Metadata finds in a portable PDB: its id, and every sequence point of every method.
static class Points { static void Main(string[] arguments) {
  using var provider = MetadataReaderProvider.FromPortablePdbStream(File.OpenRead(arguments[0]));
  var reader = provider.GetMetadataReader();
  var id = new BlobContentId(reader.DebugMetadataHeader.Id);
  Console.WriteLine($"{id.Guid} {id.Stamp:x8}");
  foreach (var handle in reader.MethodDebugInformation) {
    var method = reader.GetMethodDebugInformation(handle);
    foreach (var point in method.GetSequencePoints()) {
      var place = point.IsHidden ? "hidden" : $"{point.StartLine}:{point.StartColumn}-{point.EndLine}:{point.EndColumn}";
      var file = reader.GetString(reader.GetDocument(point.Document).Name);
      Console.WriteLine($"{MetadataTokens.GetToken(handle.ToDefinitionHandle()):x8} {point.Offset} {place} {file}");
    } } } }
