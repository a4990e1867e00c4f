using System;
using System.Net;
using System.Net.Sockets;

namespace Rakwire.Tests
{
    /// <summary>A UDP path between a client and a server that drops datagrams longer than <see
    /// cref="Longest"/>.</summary>
    sealed class NarrowPath : IDisposable
    {
        readonly Socket toClient = Open(), toServer = Open();
        readonly IPEndPoint server;
        readonly byte[] buffer = new byte[2048];
        EndPoint client;

        internal int Longest = 2048;

        internal NarrowPath(Address server) { this.server = server.ToIPEndPoint(); }

        internal string Address => toClient.LocalEndPoint.ToString();

        static Socket Open()
        {
            var socket = new Socket(AddressFamily.InterNetwork, SocketType.Dgram, ProtocolType.Udp);
            socket.Bind(new IPEndPoint(IPAddress.Loopback, 0));
            return socket;
        }

        /// <summary>Forwards all datagrams that have arrived.</summary>
        internal void Carry()
        {
            while (toClient.Available > 0)
            {
                EndPoint from = new IPEndPoint(IPAddress.Any, 0);
                int length = toClient.ReceiveFrom(buffer, ref from);
                client = from;
                if (length <= Longest)
                    toServer.SendTo(buffer, length, SocketFlags.None, server);
            }
            while (toServer.Available > 0)
            {
                int length = toServer.Receive(buffer);
                if (length <= Longest)
                    toClient.SendTo(buffer, length, SocketFlags.None, client);
            }
        }

        public void Dispose()
        {
            toClient.Dispose();
            toServer.Dispose();
        }
    }

    static class NarrowPathTest
    {
        [Test]
        static void a_shrinking_path_mtu_is_reported_as_an_event()
        {
            using (var pair = new Pair())
            using (var path = new NarrowPath(pair.Server.LocalAddress))
            {
                Connection connection = pair.Client.Connect(path.Address);
                DateTime end = DateTime.UtcNow.AddSeconds(60);
                while (DateTime.UtcNow < end)
                {
                    System.Threading.Thread.Sleep(1);
                    path.Carry();
                    pair.Server.Update();
                    while (pair.Server.Poll(out var there)) { }
                    pair.Client.Update();
                    while (pair.Client.Poll(out var here))
                        if (here.Kind == EventKind.Connected)
                        {
                            path.Longest = 800;
                            var message = new byte[20000];
                            message[0] = 0x86;
                            pair.Client.Send(connection, message);
                        }
                        else if (here.Kind == EventKind.MtuChanged)
                        {
                            Expect.True(here.Mtu >= 576 && here.Mtu < 1492, "the new MTU is smaller");
                            Expect.Equal(here.Mtu, pair.Client.Info(connection).Mtu);
                            Expect.Equal(connection, here.Connection);
                            return;
                        }
                }
                throw new Exception("no MtuChanged event within 60 seconds");
            }
        }
    }
}
