// An echo server and client. `Echo.exe serve 0.0.0.0:19132` echoes every message. `Echo.exe 127.0.0.1:19132 hello`
// sends one and prints its echo.

using System;
using System.Text;
using System.Threading;
using Rakwire;

static class Echo
{
    static int Main(string[] arguments)
    {
        if (arguments.Length != 2)
        {
            Console.Error.WriteLine("usage: Echo.exe serve ADDRESS | Echo.exe ADDRESS TEXT");
            return 2;
        }
        return arguments[0] == "serve" ? Serve(arguments[1]) : Ask(arguments[0], arguments[1]);
    }

    static int Serve(string address)
    {
        using (var server = new Endpoint(new EndpointOptions { BindAddress = address, MaxIncoming = 64 }))
        {
            Console.WriteLine("listening on " + server.LocalAddress);
            for (;;)
            {
                server.Update();
                while (server.Poll(out var e))
                    if (e.Kind == EventKind.Message)
                        server.TrySend(e.Connection, e.Data, e.Reliability, e.Channel);
                server.Flush();
                Thread.Sleep(5);
            }
        }
    }

    static int Ask(string address, string text)
    {
        // 0x86 is the first message id that RakNet leaves to applications.
        byte[] message = Encoding.UTF8.GetBytes("_" + text);
        message[0] = 0x86;
        using (var client = new Endpoint())
        {
            Connection server = client.Connect(address);
            for (;;)
            {
                client.Update();
                while (client.Poll(out var e))
                    switch (e.Kind)
                    {
                        case EventKind.Connected:
                            client.Send(server, message);
                            break;
                        case EventKind.Message:
                            Console.WriteLine(Encoding.UTF8.GetString(e.Data.Slice(1).ToArray()));
                            client.Disconnect(server);
                            break;
                        case EventKind.Disconnected:
                            return 0;
                        case EventKind.ConnectFailed:
                            Console.Error.WriteLine(e.ReasonText);
                            return 1;
                    }
                client.Flush();
                Thread.Sleep(5);
            }
        }
    }
}
