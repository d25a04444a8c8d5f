// What a runtime loads when it is told to: writes the value of SET_BY_CLIENT into the file that HOOK_MARK names.
internal class StartupHook
{
    public static void Initialize()
    {
        var value = System.Environment.GetEnvironmentVariable("SET_BY_CLIENT") ?? "(not set)";
        System.IO.File.WriteAllText(System.Environment.GetEnvironmentVariable("HOOK_MARK"), value);
    }
}
