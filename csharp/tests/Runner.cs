// Runs each method with [Test], and exits with 1 if one failed. An argument selects tests with names that contain it.

using System;
using System.Linq;
using System.Reflection;

namespace Rakwire.Tests
{
    [AttributeUsage(AttributeTargets.Method)]
    sealed class TestAttribute : Attribute { }

    static class Expect
    {
        internal static void Equal<T>(T expected, T found)
        {
            if (!Equals(expected, found))
                throw new Exception("expected " + expected + ", found " + found);
        }

        internal static void Bytes(ReadOnlySpan<byte> expected, ReadOnlySpan<byte> found)
        {
            if (!expected.SequenceEqual(found))
                throw new Exception("the bytes differ; expected length " + expected.Length + ", found length " + found.Length);
        }

        internal static void True(bool holds, string condition)
        {
            if (!holds)
                throw new Exception("this is not true: " + condition);
        }

        /// <summary>Runs an action that must throw a <c>T</c>, and returns the exception.</summary>
        internal static T Throws<T>(Action action) where T : Exception
        {
            try
            {
                action();
            }
            catch (T expected)
            {
                return expected;
            }
            throw new Exception("no " + typeof(T).Name + " was thrown");
        }

        /// <summary>Runs an action that must throw a RakwireException with this code and a description.</summary>
        internal static void Fails(ErrorCode code, Action action)
        {
            var failure = Throws<RakwireException>(action);
            Equal(code, failure.Code);
            True(failure.Message.Length > 10, "the exception has a description");
        }
    }

    static class Runner
    {
        static int Main(string[] arguments)
        {
            string part = arguments.Length > 0 ? arguments[0] : "";
            int passed = 0, failed = 0;
            var tests = typeof(Runner).Assembly.GetTypes()
                .SelectMany(type => type.GetMethods(BindingFlags.Static | BindingFlags.NonPublic | BindingFlags.Public))
                .Where(method => method.GetCustomAttribute<TestAttribute>() != null)
                .Where(method => (method.DeclaringType.Name + "." + method.Name).Contains(part))
                .OrderBy(method => method.DeclaringType.Name + method.Name, StringComparer.Ordinal);
            foreach (MethodInfo test in tests)
            {
                string name = test.DeclaringType.Name + "." + test.Name;
                try
                {
                    ((Action)Delegate.CreateDelegate(typeof(Action), test))();
                    passed++;
                    Console.WriteLine("test " + name + " ... ok");
                }
                catch (Exception error)
                {
                    failed++;
                    Console.WriteLine("test " + name + " ... FAILED\n" + error);
                }
            }
            Console.WriteLine(passed + " passed, " + failed + " failed");
            return failed == 0 && passed > 0 ? 0 : 1;
        }
    }
}
