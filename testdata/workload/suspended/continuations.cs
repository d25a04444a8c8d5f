// The objects by which .NET 11 suspends calls without state machines, made by hand.
using System;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading.Tasks;

namespace System.Runtime.CompilerServices
{
    unsafe struct ResumeInfo
    {
        public void* Resume;
        public void* DiagnosticIP;
    }

    unsafe class Continuation
    {
        public Continuation Next;
        public ResumeInfo* ResumeInfo;
        public int Flags;
        public int State;
    }

    // The runtime makes such types for the variables of a method.
    class MethodContinuation : Continuation
    {
        public object This;
        public object Variable;
    }

    // The innermost one, of the task that is awaited: without code of a method.
    class TaskContinuation : Continuation
    {
        public Task Task;
    }

    static class AsyncHelpers
    {
        public sealed class RuntimeAsyncTask<T> : Task<T>
        {
            public RuntimeAsyncTask(Continuation state) : base(Run, state) { }
            static T Run(object state) { return default(T); }
            // What the methods of the task run.
            public Action Body;

            [MethodImpl(MethodImplOptions.NoInlining)]
            public void DispatchContinuations()
            {
                if (Body != null) { Body(); }
                GC.KeepAlive(this);
            }
        }
    }
}

// A call of a method that is suspended, with the objects of its variables.
class Call
{
    public readonly Type Type;
    public readonly string Method;
    public readonly object This;
    public readonly object Variable;

    public Call(Type type, string method, object on = null, object variable = null)
    {
        Type = type;
        Method = method;
        This = on;
        Variable = variable;
    }
}

static class Calls
{
    static unsafe void* Code(Type type, string name)
    {
        RuntimeMethodHandle method = type.GetMethod(name, BindingFlags.Static | BindingFlags.Instance | BindingFlags.Public).MethodHandle;
        RuntimeHelpers.PrepareMethod(method);
        byte* code = (byte*)method.GetFunctionPointer();
        // A stub jumps to the address that a cell has.
        while (code[0] == 0xff && code[1] == 0x25) { code = *(byte**)(code + 6 + *(int*)(code + 2)); }
        return code;
    }

    static unsafe ResumeInfo* Info(void* code)
    {
        ResumeInfo* info = (ResumeInfo*)Marshal.AllocHGlobal(sizeof(ResumeInfo));
        info->Resume = code;
        info->DiagnosticIP = code;
        return info;
    }

    // A task whose methods await "task", the innermost first.
    public static unsafe AsyncHelpers.RuntimeAsyncTask<int> Suspend(Task task, params Call[] calls)
    {
        var head = new TaskContinuation { Task = task, ResumeInfo = Info(null) };
        Continuation last = head;
        foreach (Call call in calls)
        {
            ResumeInfo* info = Info(Code(call.Type, call.Method));
            last = last.Next = new MethodContinuation { ResumeInfo = info, This = call.This, Variable = call.Variable };
        }
        var suspended = new AsyncHelpers.RuntimeAsyncTask<int>(head);
        task.GetAwaiter().UnsafeOnCompleted(suspended.DispatchContinuations);
        return suspended;
    }
}
