using System;
using System.Collections.Generic;
using System.Threading;

namespace Rakwire.Tests
{
    /// <summary>An event with a copy of its bytes, which stays valid after the next Poll.</summary>
    sealed class Seen
    {
        internal EventKind Kind;
        internal Connection Connection;
        internal Request Request;
        internal Address Address;
        internal ulong Guid, LatencyUs;
        internal byte[] Data;
        internal int Reason;
        internal string ReasonText;
        internal uint Receipt, ProgressDone, ProgressParts;
        internal ushort Mtu;
        internal Reliability Reliability;
        internal byte Channel, ServerVersion;
        internal Outcome Outcome;
        internal Side Side;
        internal bool IsOutgoing, IsValidated;

        internal Seen(in EndpointEvent from)
        {
            Kind = from.Kind;
            Connection = from.Connection;
            Request = from.Request;
            Address = from.Address;
            Guid = from.Guid;
            LatencyUs = from.LatencyUs;
            Data = from.Data.ToArray();
            Reason = from.Raw.Reason;
            ReasonText = from.ReasonText;
            Receipt = from.Receipt;
            ProgressDone = from.ProgressDone;
            ProgressParts = from.ProgressParts;
            Mtu = from.Mtu;
            Reliability = from.Reliability;
            Channel = from.Channel;
            ServerVersion = from.ServerVersion;
            Outcome = from.Outcome;
            Side = from.Side;
            IsOutgoing = from.IsOutgoing;
            IsValidated = from.IsValidated;
        }
    }

    /// <summary>A server and a client over loopback in one thread.</summary>
    sealed class Pair : IDisposable
    {
        internal readonly Endpoint Server, Client;
        /// <summary>The handle of the connection at the client (There) and at the server (Back).</summary>
        internal Connection There, Back;

        internal static EndpointOptions ServerOptions() => new EndpointOptions { BindAddress = "127.0.0.1:0", MaxIncoming = 8 };

        internal static EndpointOptions ClientOptions() => new EndpointOptions { BindAddress = "127.0.0.1:0" };

        internal Pair(EndpointOptions server = null, EndpointOptions client = null)
        {
            Server = new Endpoint(server ?? ServerOptions());
            Client = new Endpoint(client ?? ClientOptions());
        }

        internal string ServerAddress => Server.LocalAddress.ToString();

        internal static Pair Connected(EndpointOptions server = null, EndpointOptions client = null)
        {
            var pair = new Pair(server, client);
            pair.Connect();
            return pair;
        }

        internal void Connect(ConnectOptions options = null)
        {
            There = Client.Connect(ServerAddress, options);
            Back = WaitFor(Server, EventKind.Connected).Connection;
            WaitFor(Client, EventKind.Connected);
        }

        readonly List<Seen> atServer = new List<Seen>(), atClient = new List<Seen>();

        /// <summary>Updates both endpoints until `at` has an event of this kind. Removes and returns it; other events
        /// stay queued.</summary>
        internal Seen WaitFor(Endpoint at, EventKind kind)
        {
            List<Seen> events = at == Server ? atServer : atClient;
            for (int frame = 0; frame < 10000; frame++)
            {
                int found = events.FindIndex(one => one.Kind == kind);
                if (found >= 0)
                {
                    Seen seen = events[found];
                    events.RemoveAt(found);
                    return seen;
                }
                Frame(Server, atServer);
                Frame(Client, atClient);
                Thread.Sleep(1);
            }
            throw new Exception("no event of the kind " + kind);
        }

        /// <summary>Updates both endpoints until neither has a connection.</summary>
        internal void WaitForEnd()
        {
            for (int frame = 0; frame < 10000 && Server.ConnectionCount + Client.ConnectionCount > 0; frame++)
            {
                Frame(Server, atServer);
                Frame(Client, atClient);
                Thread.Sleep(1);
            }
            Expect.Equal(0, Server.ConnectionCount + Client.ConnectionCount);
        }

        static void Frame(Endpoint endpoint, List<Seen> events)
        {
            endpoint.Update();
            while (endpoint.Poll(out var e))
                events.Add(new Seen(e));
        }

        public void Dispose()
        {
            Server.Dispose();
            Client.Dispose();
        }
    }
}
