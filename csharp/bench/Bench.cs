// The C# counterpart of bench.c: measures round trips, and messages in one direction, between two endpoints in one
// thread.

using System;
using System.Diagnostics;
using Rakwire;

static class Bench
{
    const int RoundTrips = 20000, Messages = 500000, Burst = 100, Length = 32;

    /// <summary>Handles received datagrams. Returns the number of messages, and echoes them if <c>echoes</c>.</summary>
    static int Receive(Endpoint endpoint, bool echoes)
    {
        int messages = 0;
        endpoint.Update();
        while (endpoint.Poll(out var e))
            if (e.Kind == EventKind.Message)
            {
                messages++;
                if (echoes)
                    endpoint.Send(e.Connection, e.Data, e.Reliability, e.Channel);
            }
        endpoint.Flush();
        return messages;
    }

    static readonly Stopwatch Clock = new Stopwatch();
    static TimeSpan cpuStart;

    static TimeSpan Cpu => Process.GetCurrentProcess().TotalProcessorTime;

    static void Begin()
    {
        Clock.Restart();
        cpuStart = Cpu;
    }

    /// <summary>Prints the rates per elapsed second and per second of processor time. Other programs disturb the latter
    /// less.</summary>
    static void End(string name, int count)
    {
        Console.WriteLine(name + "_per_second " + (count / Clock.Elapsed.TotalSeconds).ToString("0"));
        Console.WriteLine(name + "_per_cpu_second " + (count / (Cpu - cpuStart).TotalSeconds).ToString("0"));
    }

    static void Main()
    {
        using (var server = new Endpoint(new EndpointOptions { BindAddress = "127.0.0.1:0", MaxIncoming = 8 }))
        using (var client = new Endpoint(new EndpointOptions { BindAddress = "127.0.0.1:0" }))
        {
            Connection there = client.Connect(server.LocalAddress.ToString());
            do
            {
                Receive(server, false);
                Receive(client, false);
            } while (client.Info(there).State != ConnectionState.Connected);
            Run(server, client, there);
        }
    }

    static void Run(Endpoint server, Endpoint client, Connection there)
    {
        var message = new byte[Length];
        message[0] = 0x86;
        // The first round is a warm-up: a just-in-time compiler optimises code only after some calls.
        for (int round = 0; round < 2; round++)
        {
            Begin();
            for (int done = 0; done < RoundTrips; done++)
            {
                client.Send(there, message);
                client.Flush();
                while (Receive(server, true) == 0)
                    continue;
                while (Receive(client, false) == 0)
                    continue;
            }
            if (round > 0)
                End("round_trips", RoundTrips);
            Begin();
            for (int sent = 0, arrived = 0; arrived < Messages;)
            {
                for (int burst = 0; burst < Burst && sent < Messages; burst++)
                    if (client.TrySend(there, message) == ErrorCode.Ok)
                        sent++;
                client.Flush();
                arrived += Receive(server, false);
                Receive(client, false);
            }
            if (round > 0)
                End("messages", Messages);
        }
    }
}
