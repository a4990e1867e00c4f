// The client of `cargo xtask bench doors` in C#, with the same work as capi/benches/door.c: Door ADDRESS WINDOW SECONDS.

using System;
using System.Diagnostics;
using System.Globalization;
using Rakwire;

static class Door
{
    static readonly byte[] Message = new byte[64];
    static Endpoint client;
    static Connection server;

    static void Send(long count)
    {
        for (long sent = 0; sent < count; sent++)
            client.Send(server, Message);
        client.Flush();
    }

    /// <summary>Handles received datagrams. Returns the number of events of a kind.</summary>
    static long Receive(EventKind kind)
    {
        long found = 0;
        client.Update();
        while (client.Poll(out var e))
            if (e.Kind == kind)
                found++;
        return found;
    }

    /// <summary>Keeps messages in flight for a time, and then waits for the last echoes. Returns the number of echoes
    /// within the time.</summary>
    static long Play(long window, double seconds, out double elapsed)
    {
        long begin = Stopwatch.GetTimestamp(), echoes = 0, inFlight = window;
        Send(window);
        while ((elapsed = (Stopwatch.GetTimestamp() - begin) / (double)Stopwatch.Frequency) < seconds)
        {
            long arrived = Receive(EventKind.Message);
            echoes += arrived;
            if (arrived > 0)
                Send(arrived);
            else if (window > 1)
                client.Wait(100);
        }
        while (inFlight > 0)
            inFlight -= Receive(EventKind.Message);
        return echoes;
    }

    static int Main(string[] args)
    {
        if (args.Length != 3)
        {
            Console.Error.WriteLine("usage: Door ADDRESS WINDOW SECONDS");
            return 2;
        }
        long window = long.Parse(args[1]);
        double seconds = double.Parse(args[2], CultureInfo.InvariantCulture);
        Message[0] = 0x86;
        using (client = new Endpoint())
        {
            server = client.Connect(args[0]);
            while (Receive(EventKind.Connected) == 0)
                client.Wait(100);
            Play(window, seconds / 2, out double elapsed);
            Console.WriteLine("connected");
            Console.ReadLine();
            long echoes = Play(window, seconds, out elapsed);
            Console.WriteLine(echoes + " " + elapsed.ToString("0.000000000", CultureInfo.InvariantCulture));
            Console.ReadLine();
        }
        return 0;
    }
}
