using System;
using System.Linq;
using System.Reflection;
using System.Threading;

namespace Rakwire.Tests
{
    /// <summary>Runs the component in docs/from-unity.md, which csharp/check extracts to a file with the port RAKWIRE_PORT.</summary>
    static class DocumentTests
    {
        static void Call(object component, string method) =>
            component.GetType().GetMethod(method, BindingFlags.Instance | BindingFlags.NonPublic).Invoke(component, null);

        [Test]
        static void the_component_in_the_unity_document_receives_an_echo()
        {
            var options = Pair.ServerOptions();
            options.BindAddress = "127.0.0.1:" + Environment.GetEnvironmentVariable("RAKWIRE_PORT");
            UnityEngine.Debug.Lines.Clear();
            var component = new EchoClient();
            using (var server = new Endpoint(options))
            {
                Call(component, "Start");
                for (int frame = 0; frame < 10000 && !UnityEngine.Debug.Lines.Any(); frame++)
                {
                    Call(component, "Update");
                    server.Update();
                    while (server.Poll(out var e))
                        if (e.Kind == EventKind.Message)
                            server.TrySend(e.Connection, e.Data);
                    server.Flush();
                    Thread.Sleep(1);
                }
                Expect.Equal("2 bytes", UnityEngine.Debug.Lines.Single());
                Call(component, "OnDestroy");
            }
        }
    }
}
