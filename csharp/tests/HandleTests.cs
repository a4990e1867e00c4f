using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Rakwire.Tests
{
    static class HandleTests
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        static string Abandon(int depth)
        {
            // Mono scans the stack conservatively. The reference must therefore be in a deep frame, which Overwrite
            // overwrites later.
            if (depth > 0)
                return Abandon(depth - 1);
            return new Endpoint(Pair.ServerOptions()).LocalAddress.ToString();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static int Overwrite(int depth) => depth == 0 ? 0 : Overwrite(depth - 1) + 1;

        [Test]
        static void an_unreferenced_endpoint_is_closed_when_its_thread_opens_another()
        {
            string address = Abandon(50);
            for (int round = 0; round < 20; round++)
            {
                Overwrite(100);
                GC.Collect();
                GC.WaitForPendingFinalizers();
                try
                {
                    new Endpoint(new EndpointOptions { BindAddress = address }).Dispose();
                    return;
                }
                catch (RakwireException busy)
                {
                    Expect.Equal(ErrorCode.Bind, busy.Code);
                }
            }
            throw new Exception("the port is still in use");
        }

        [Test]
        static void endpoints_are_closed_when_their_thread_exits()
        {
            Endpoint endpoint = null;
            string address = null;
            var thread = new Thread(() =>
            {
                endpoint = new Endpoint(Pair.ServerOptions());
                address = endpoint.LocalAddress.ToString();
            });
            thread.Start();
            thread.Join();
            // The operating system's thread may outlive Join for a moment.
            for (int round = 0; ; round++)
                try
                {
                    new Endpoint(new EndpointOptions { BindAddress = address }).Dispose();
                    break;
                }
                catch (RakwireException busy) when (busy.Code == ErrorCode.Bind && round < 1000)
                {
                    Thread.Sleep(1);
                }
            Expect.Fails(ErrorCode.Handle, () => endpoint.Update());
        }

        [Test]
        static void requests_of_another_endpoint_are_refused()
        {
            EndpointOptions options = Pair.ServerOptions();
            options.DeferIncoming = true;
            using (var one = new Pair(options))
            using (var other = new Pair(options))
            {
                one.Client.Connect(one.ServerAddress);
                other.Client.Connect(other.ServerAddress);
                Request request = one.WaitFor(one.Server, EventKind.Incoming).Request;
                Request own = other.WaitFor(other.Server, EventKind.Incoming).Request;
                Expect.Fails(ErrorCode.Handle, () => other.Server.Accept(request));
                Expect.Fails(ErrorCode.Handle, () => other.Server.Refuse(request));
                Expect.Fails(ErrorCode.Handle, () => other.Server.Ignore(request));
                one.Server.Accept(request);
                one.WaitFor(one.Client, EventKind.Connected);
                other.Server.Accept(own);
                other.WaitFor(other.Client, EventKind.Connected);
            }
        }

        [Test]
        static void endpoints_on_different_threads_exchange_messages_in_parallel()
        {
            var problems = new Exception[2];
            var threads = new Thread[2];
            for (int number = 0; number < 2; number++)
            {
                int own = number;
                threads[own] = new Thread(() =>
                {
                    try
                    {
                        using (var pair = Pair.Connected())
                            for (int count = 0; count < 200; count++)
                            {
                                pair.Client.Send(pair.There, new byte[] { 0x86, (byte)own });
                                Expect.Bytes(new byte[] { 0x86, (byte)own }, pair.WaitFor(pair.Server, EventKind.Message).Data);
                            }
                    }
                    catch (Exception error)
                    {
                        problems[own] = error;
                    }
                });
                threads[own].Start();
            }
            foreach (Thread thread in threads)
                thread.Join();
            foreach (Exception problem in problems)
                if (problem != null)
                    throw problem;
        }

        [Test]
        static void close_disconnects_all_connections_and_disposes_the_endpoint()
        {
            using (var pair = Pair.Connected())
            {
                pair.Client.Send(pair.There, new byte[] { 0x86 });
                pair.WaitFor(pair.Server, EventKind.Message);
                pair.Client.Disconnect(pair.There);
                pair.WaitFor(pair.Client, EventKind.Disconnected);
                pair.WaitForEnd();
                // Without connections, Close does not wait.
                pair.Client.Close(1000000);
                Expect.Fails(ErrorCode.Handle, () => pair.Client.Update());
                Expect.Fails(ErrorCode.Handle, () => pair.Client.Close(0));
            }
            using (var server = new Endpoint(Pair.ServerOptions()))
            {
                var ended = new ManualResetEvent(false);
                string address = server.LocalAddress.ToString();
                var thread = new Thread(() =>
                {
                    using (var client = new Endpoint())
                    {
                        client.Connect(address);
                        bool isOpen = false;
                        while (!isOpen)
                        {
                            client.Update();
                            while (client.Poll(out var e))
                                isOpen |= e.Kind == EventKind.Connected;
                        }
                        client.Close(20000);
                    }
                    ended.Set();
                });
                thread.Start();
                var reason = (DisconnectReason)0;
                for (int frame = 0; frame < 10000 && reason == 0; frame++)
                {
                    Thread.Sleep(1);
                    server.Update();
                    while (server.Poll(out var e))
                        if (e.Kind == EventKind.Disconnected)
                            reason = e.DisconnectReason;
                }
                Expect.Equal(DisconnectReason.Remote, reason);
                for (int frame = 0; frame < 10000 && !ended.WaitOne(0); frame++)
                {
                    Thread.Sleep(1);
                    server.Update();
                }
                Expect.True(ended.WaitOne(0), "Close returns once the server has acknowledged the disconnect");
                thread.Join();
            }
        }

        [Test]
        static void dispose_frees_the_port()
        {
            for (int round = 0; round < 200; round++)
                using (var endpoint = new Endpoint(Pair.ServerOptions()))
                    endpoint.Update();
            var pair = Pair.Connected();
            string address = pair.ServerAddress;
            pair.Dispose();
            new Endpoint(new EndpointOptions { BindAddress = address }).Dispose();
        }
    }
}
