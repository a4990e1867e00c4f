using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using Rakwire.Transports;
using Unity.Netcode;

namespace Rakwire.Tests
{
    /// <summary>Tests the transport for Netcode with the calls that its NetworkManager makes.</summary>
    static class NetcodeTests
    {
        sealed class Player : IDisposable
        {
            internal readonly NetcodeTransport Transport = new NetcodeTransport();
            internal readonly List<Tuple<NetworkEvent, ulong, byte[]>> Events = new List<Tuple<NetworkEvent, ulong, byte[]>>();

            internal void Frame()
            {
                for (;;)
                {
                    NetworkEvent kind = Transport.PollEvent(out ulong client, out ArraySegment<byte> payload, out float time);
                    if (kind == NetworkEvent.Nothing)
                        break;
                    Expect.True(time > 0, "each event has a receive time");
                    Events.Add(Tuple.Create(kind, client, payload.Array == null ? new byte[0] : payload.ToArray()));
                }
                Transport.EndFrame();
            }

            /// <summary>Removes and returns the first event of this kind, or null.</summary>
            internal Tuple<NetworkEvent, ulong, byte[]> Take(NetworkEvent kind)
            {
                int at = Events.FindIndex(one => one.Item1 == kind);
                if (at < 0)
                    return null;
                Tuple<NetworkEvent, ulong, byte[]> found = Events[at];
                Events.RemoveAt(at);
                return found;
            }

            public void Dispose() => Transport.Shutdown();
        }

        /// <summary>A host and two clients.</summary>
        sealed class Game : IDisposable
        {
            internal readonly Player Host = new Player();
            internal readonly Player[] Clients = { new Player(), new Player() };
            internal readonly ulong[] Ids = new ulong[2];

            internal Game(string password = "", string clientPassword = "")
            {
                UnityEngine.Debug.Lines.Clear();
                Host.Transport.Initialize();
                Host.Transport.ListenAddress = "127.0.0.1:0";
                Host.Transport.Password = password;
                Expect.True(Host.Transport.StartServer(), "the server starts");
                foreach (Player client in Clients)
                {
                    client.Transport.ConnectAddress = Host.Transport.Endpoint.LocalAddress.ToString();
                    client.Transport.Password = clientPassword;
                    Expect.True(client.Transport.StartClient(), "the client starts");
                }
            }

            internal Game Connect()
            {
                for (int number = 0; number < 2; number++)
                {
                    Expect.Equal(0ul, WaitFor(Clients[number], NetworkEvent.Connect).Item2);
                    Ids[number] = 0;
                }
                ulong[] ids = { WaitFor(Host, NetworkEvent.Connect).Item2, WaitFor(Host, NetworkEvent.Connect).Item2 };
                Expect.True(ids[0] != ids[1] && ids.All(id => id != 0), "the clients have different ids");
                // The first message identifies the client.
                for (byte number = 0; number < 2; number++)
                {
                    Clients[number].Transport.Send(0, new ArraySegment<byte>(new[] { number }), NetworkDelivery.Reliable);
                    Ids[number] = WaitFor(Host, NetworkEvent.Data).Item2;
                }
                return this;
            }

            internal Tuple<NetworkEvent, ulong, byte[]> WaitFor(Player player, NetworkEvent kind)
            {
                for (int frame = 0; frame < 10000; frame++)
                {
                    Tuple<NetworkEvent, ulong, byte[]> found = player.Take(kind);
                    if (found != null)
                        return found;
                    Frame();
                    Thread.Sleep(1);
                }
                throw new Exception("no event of the kind " + kind);
            }

            /// <summary>Runs 100 frames, so that all messages are acknowledged and closing need not wait for
            /// them.</summary>
            internal void Settle()
            {
                for (int frame = 0; frame < 100; frame++)
                {
                    Frame();
                    Thread.Sleep(1);
                }
            }

            internal void Frame()
            {
                Host.Frame();
                foreach (Player client in Clients)
                    client.Frame();
            }

            public void Dispose()
            {
                foreach (Player client in Clients)
                    client.Dispose();
                Host.Dispose();
            }
        }

        static ArraySegment<byte> Segment(params byte[] bytes) => new ArraySegment<byte>(bytes);

        [Test]
        static void a_host_and_two_clients_exchange_messages_of_each_delivery()
        {
            using (Game game = new Game().Connect())
                foreach (NetworkDelivery delivery in Enum.GetValues(typeof(NetworkDelivery)))
                    for (int number = 0; number < 2; number++)
                    {
                        game.Clients[number].Transport.Send(0, new ArraySegment<byte>(new byte[] { 9, (byte)number, 0, 9 }, 1, 2), delivery);
                        Tuple<NetworkEvent, ulong, byte[]> atHost = game.WaitFor(game.Host, NetworkEvent.Data);
                        Expect.Equal(game.Ids[number], atHost.Item2);
                        Expect.Bytes(new byte[] { (byte)number, 0 }, atHost.Item3);
                        game.Host.Transport.Send(game.Ids[number], Segment(1, 2, 3), delivery);
                        Tuple<NetworkEvent, ulong, byte[]> atClient = game.WaitFor(game.Clients[number], NetworkEvent.Data);
                        Expect.Equal(0ul, atClient.Item2);
                        Expect.Bytes(new byte[] { 1, 2, 3 }, atClient.Item3);
                        Expect.Equal(0, game.Clients[1 - number].Events.Count);
                    }
        }

        [Test]
        static void ordered_messages_arrive_in_order_and_large_ones_unchanged()
        {
            using (Game game = new Game().Connect())
            {
                for (byte number = 0; number < 50; number++)
                    game.Host.Transport.Send(game.Ids[0], Segment(number), NetworkDelivery.ReliableSequenced);
                var large = new byte[500000];
                large[499999] = 7;
                game.Host.Transport.Send(game.Ids[0], new ArraySegment<byte>(large), NetworkDelivery.ReliableFragmentedSequenced);
                for (byte number = 0; number < 50; number++)
                    Expect.Bytes(new[] { number }, game.WaitFor(game.Clients[0], NetworkEvent.Data).Item3);
                Expect.Bytes(large, game.WaitFor(game.Clients[0], NetworkEvent.Data).Item3);
                Expect.True(game.Host.Transport.MaxPayload(game.Ids[0]) >= 500000, "the host can send 500,000 bytes");
                Expect.True(game.Clients[0].Transport.MaxPayload(0) >= 500000, "the client can send 500,000 bytes");
            }
        }

        [Test]
        static void an_empty_payload_arrives()
        {
            using (Game game = new Game().Connect())
            {
                game.Host.Transport.Send(game.Ids[0], default(ArraySegment<byte>), NetworkDelivery.Reliable);
                Expect.Equal(0, game.WaitFor(game.Clients[0], NetworkEvent.Data).Item3.Length);
            }
        }

        [Test]
        static void either_side_can_disconnect()
        {
            using (Game game = new Game().Connect())
            {
                game.Host.Transport.DisconnectRemoteClient(game.Ids[0]);
                Expect.Equal(0ul, game.WaitFor(game.Clients[0], NetworkEvent.Disconnect).Item2);
                game.Clients[1].Transport.DisconnectLocalClient();
                Expect.Equal(game.Ids[1], game.WaitFor(game.Host, NetworkEvent.Disconnect).Item2);
                game.Settle();
                Expect.Equal<object>(null, game.Host.Take(NetworkEvent.Disconnect));
                game.Host.Transport.DisconnectRemoteClient(game.Ids[0]);
                game.Host.Transport.Send(game.Ids[0], Segment(1), NetworkDelivery.Reliable);
                Expect.Equal(0ul, game.Host.Transport.GetCurrentRtt(game.Ids[0]));
                Expect.Equal(0, UnityEngine.Debug.Lines.Count);
            }
        }

        [Test]
        static void shutdown_of_either_side_disconnects_the_other()
        {
            using (Game game = new Game().Connect())
            {
                game.Settle();
                game.Clients[0].Transport.ShutdownMs = 20;
                game.Clients[0].Transport.Shutdown();
                Expect.Equal(game.Ids[0], game.WaitFor(game.Host, NetworkEvent.Disconnect).Item2);
                game.Host.Transport.ShutdownMs = 20;
                game.Host.Transport.Shutdown();
                game.WaitFor(game.Clients[1], NetworkEvent.Disconnect);
                Expect.Equal(NetworkEvent.Nothing, game.Host.Transport.PollEvent(out ulong id, out ArraySegment<byte> none, out float time));
            }
        }

        [Test]
        static void round_trip_times_are_in_milliseconds()
        {
            using (Game game = new Game().Connect())
            {
                game.Host.Transport.Send(game.Ids[1], Segment(1), NetworkDelivery.Reliable);
                for (int frame = 0; frame < 10000 && game.Host.Transport.GetCurrentRtt(game.Ids[1]) == 0; frame++)
                    game.Frame();
                Expect.True(game.Clients[0].Transport.GetCurrentRtt(0) >= 1 && game.Clients[0].Transport.GetCurrentRtt(0) < 5000,
                    "the client has measured a round trip");
                Expect.True(game.Host.Transport.GetCurrentRtt(game.Ids[1]) >= 1, "the host has measured a round trip");
            }
        }

        [Test]
        static void a_failed_attempt_is_logged_and_reported_as_a_disconnect()
        {
            using (var game = new Game("right", "wrong"))
            {
                game.WaitFor(game.Clients[0], NetworkEvent.Disconnect);
                Expect.True(UnityEngine.Debug.Lines.Any(line => line.Contains("password")), "the log contains the reason");
                Expect.Equal<object>(null, game.Host.Take(NetworkEvent.Connect));
            }
            using (new Game("right", "right").Connect())
                Expect.Equal(0, UnityEngine.Debug.Lines.Count);
        }

        [Test]
        static void transports_with_invalid_addresses_do_not_start()
        {
            using (var player = new Player())
            {
                UnityEngine.Debug.Lines.Clear();
                player.Transport.ConnectAddress = "nonsense";
                Expect.True(!player.Transport.StartClient(), "a client with an invalid address does not start");
                player.Transport.ListenAddress = "nonsense";
                Expect.True(!player.Transport.StartServer(), "a server with an invalid address does not start");
                Expect.Equal(2, UnityEngine.Debug.Lines.Count);
            }
        }

        [Test]
        static void a_full_send_queue_drops_unreliable_messages_but_closes_the_connection_for_a_reliable_one()
        {
            using (Game game = new Game().Connect())
            {
                var large = new ArraySegment<byte>(new byte[1000000]);
                NetcodeTransport host = game.Host.Transport;
                while (host.Endpoint.TrySend(new Connection(game.Ids[0]), 0x87, large, Reliability.Reliable) == ErrorCode.Ok)
                    continue;
                host.Send(game.Ids[0], large, NetworkDelivery.Unreliable);
                Expect.Equal(0, UnityEngine.Debug.Lines.Count);
                host.Send(game.Ids[0], large, NetworkDelivery.Reliable);
                Expect.Equal(1, UnityEngine.Debug.Lines.Count);
                Expect.Equal(game.Ids[0], game.WaitFor(game.Host, NetworkEvent.Disconnect).Item2);
            }
        }

        [Test]
        static void the_netcode_transport_allocates_no_managed_memory_for_messages()
        {
            using (Game game = new Game().Connect())
            {
                var payload = new ArraySegment<byte>(new byte[40]);
                Action<int> exchange = messages =>
                {
                    for (int arrived = 0; arrived < messages;)
                    {
                        game.Clients[0].Transport.Send(0, payload, NetworkDelivery.ReliableSequenced);
                        game.Clients[0].Transport.EndFrame();
                        while (game.Clients[0].Transport.PollEvent(out ulong s, out ArraySegment<byte> none, out float at) != NetworkEvent.Nothing)
                            continue;
                        while (game.Host.Transport.PollEvent(out ulong c, out ArraySegment<byte> some, out float when) == NetworkEvent.Data)
                            arrived++;
                    }
                };
                exchange(1000);
                long before = GC.GetAllocatedBytesForCurrentThread();
                exchange(10000);
                Expect.Equal(0L, GC.GetAllocatedBytesForCurrentThread() - before);
            }
        }
    }
}
