using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using Mirror;
using Rakwire.Transports;

namespace Rakwire.Tests
{
    /// <summary>Tests the transport for Mirror with the calls that Mirror's loop makes.</summary>
    static class MirrorTests
    {
        sealed class Player : IDisposable
        {
            internal readonly RakwireTransport Transport = new RakwireTransport();
            /// <summary>The handler calls so far, such as "connected 1 127.0.0.1" or "data 1 reliable
            /// 010203".</summary>
            internal readonly List<string> Calls = new List<string>();

            internal Player()
            {
                Transport.OnClientConnected = () => Calls.Add("connected");
                Transport.OnClientDisconnected = () => Calls.Add("disconnected");
                Transport.OnClientDataReceived = (data, channel) => Calls.Add("data " + Name(channel) + " " + Hex(data));
                Transport.OnClientDataSent = (data, channel) => Calls.Add("sent " + Name(channel) + " " + data.Count);
                Transport.OnClientError = (error, text) => Calls.Add("error " + error + " " + text);
                Transport.OnServerConnectedWithAddress = (id, address) => Calls.Add("connected " + id + " " + address);
                Transport.OnServerDisconnected = id => Calls.Add("disconnected " + id);
                Transport.OnServerDataReceived = (id, data, channel) => Calls.Add("data " + id + " " + Name(channel) + " " + Hex(data));
                Transport.OnServerDataSent = (id, data, channel) => Calls.Add("sent " + id + " " + Name(channel) + " " + data.Count);
                Transport.OnServerError = (id, error, text) => Calls.Add("error " + id + " " + error + " " + text);
            }

            static string Name(int channel) => channel == Channels.Unreliable ? "unreliable" : "reliable";

            static string Hex(ArraySegment<byte> data) =>
                data.Count > 20 ? data.Count + " bytes" : string.Concat(data.Select(one => one.ToString("x2")));

            internal void Frame()
            {
                Transport.ServerEarlyUpdate();
                Transport.ClientEarlyUpdate();
                Transport.ServerLateUpdate();
                Transport.ClientLateUpdate();
            }

            public void Dispose() => Transport.Shutdown();
        }

        /// <summary>A host (server and client in one transport) and two clients.</summary>
        sealed class Game : IDisposable
        {
            internal readonly Player Host = new Player();
            internal readonly Player[] Clients = { new Player(), new Player() };

            internal Game()
            {
                Host.Transport.ListenHost = "127.0.0.1";
                Host.Transport.Port = FreePort();
                Host.Transport.ServerStart();
                foreach (Player client in Clients)
                    client.Transport.Port = Host.Transport.Port;
            }

            static ushort FreePort()
            {
                using (var endpoint = new Endpoint(Pair.ServerOptions()))
                    return endpoint.LocalAddress.Port;
            }

            internal Game Connect()
            {
                for (int number = 0; number < 2; number++)
                {
                    Clients[number].Transport.ClientConnect("127.0.0.1");
                    Expect.True(!Clients[number].Transport.ClientConnected(), "the client is not connected yet");
                    WaitFor(Clients[number], "connected");
                    WaitFor(Host, "connected " + (number + 1) + " 127.0.0.1");
                    Expect.True(Clients[number].Transport.ClientConnected(), "connected");
                }
                return this;
            }

            /// <summary>Runs all players until `player` has a handler call that begins with `call`. Returns that call,
            /// and removes it and all earlier ones.</summary>
            internal string WaitFor(Player player, string call)
            {
                for (int frame = 0; frame < 10000; frame++)
                {
                    int at = player.Calls.FindIndex(one => one.StartsWith(call, StringComparison.Ordinal));
                    if (at >= 0)
                    {
                        string found = player.Calls[at];
                        player.Calls.RemoveRange(0, at + 1);
                        return found;
                    }
                    Frame();
                    Thread.Sleep(1);
                }
                throw new Exception("the transport did not call " + call + ", but " + string.Join("; ", player.Calls));
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
        static void a_host_and_two_clients_exchange_messages_on_both_channels()
        {
            using (Game game = new Game().Connect())
                foreach (string channel in new[] { "reliable", "unreliable" })
                    for (int number = 0; number < 2; number++)
                    {
                        int id = channel == "reliable" ? Channels.Reliable : Channels.Unreliable;
                        game.Clients[number].Transport.ClientSend(new ArraySegment<byte>(new byte[] { 9, 1, (byte)number, 9 }, 1, 2), id);
                        game.WaitFor(game.Clients[number], "sent " + channel + " 2");
                        Expect.Equal("data " + (number + 1) + " " + channel + " 010" + number,
                            game.WaitFor(game.Host, "data"));
                        game.Host.Transport.ServerSend(number + 1, Segment(1, 2, 3), id);
                        game.WaitFor(game.Host, "sent " + (number + 1) + " " + channel + " 3");
                        Expect.Equal("data " + channel + " 010203", game.WaitFor(game.Clients[number], "data"));
                    }
        }

        [Test]
        static void one_mirror_component_can_be_server_and_client()
        {
            using (var game = new Game())
            {
                game.Host.Transport.ClientConnect(new Uri("rakwire://127.0.0.1:" + game.Host.Transport.Port));
                game.WaitFor(game.Host, "connected 1 127.0.0.1");
                while (!game.Host.Transport.ClientConnected())
                    game.Frame();
                game.Host.Transport.ClientSend(Segment(5), Channels.Reliable);
                game.WaitFor(game.Host, "data 1 reliable 05");
                Expect.Throws<ArgumentException>(() => game.Host.Transport.ClientConnect(new Uri("http://127.0.0.1")));
            }
        }

        [Test]
        static void either_side_can_disconnect()
        {
            using (Game game = new Game().Connect())
            {
                game.Host.Transport.ServerDisconnect(1);
                Expect.Equal("disconnected", game.WaitFor(game.Clients[0], ""));
                game.WaitFor(game.Host, "disconnected 1");
                game.Clients[1].Transport.ClientDisconnect();
                Expect.Equal("disconnected", game.WaitFor(game.Clients[1], ""));
                game.WaitFor(game.Host, "disconnected 2");
                Expect.True(!game.Clients[1].Transport.ClientConnected(), "the client is not connected");
                // Calls for closed connections must have no effect.
                game.Host.Transport.ServerDisconnect(1);
                game.Host.Transport.ServerSend(1, Segment(1), Channels.Reliable);
                game.Clients[1].Transport.ClientSend(Segment(1), Channels.Reliable);
                game.Clients[1].Transport.ClientDisconnect();
                Expect.Equal("", game.Host.Transport.ServerGetClientAddress(1));
                Expect.Equal(0.0, game.Host.Transport.ServerRoundTripMs(1));
                Expect.True(!game.Host.Calls.Concat(game.Clients[1].Calls).Any(), "no handler is called");
                // The id of a client must never be reused.
                game.Clients[0].Transport.ClientConnect("127.0.0.1");
                game.WaitFor(game.Host, "connected 3 127.0.0.1");
            }
        }

        [Test]
        static void stopping_the_server_disconnects_its_clients()
        {
            using (Game game = new Game().Connect())
            {
                game.Settle();
                game.Host.Transport.StopMs = 20;
                game.Host.Transport.ServerStop();
                Expect.True(!game.Host.Transport.ServerActive(), "the server is not active");
                Expect.Equal("disconnected", game.WaitFor(game.Clients[0], ""));
                game.Host.Transport.ServerStart();
                Expect.True(game.Host.Transport.ServerActive(), "the server is active again");
            }
        }

        [Test]
        static void the_mirror_transport_reports_addresses_round_trips_and_packet_sizes()
        {
            using (Game game = new Game().Connect())
            {
                Expect.Equal("127.0.0.1", game.Host.Transport.ServerGetClientAddress(1));
                game.Host.Transport.ServerSend(1, Segment(1), Channels.Reliable);
                for (int frame = 0; frame < 10000 && game.Host.Transport.ServerRoundTripMs(1) == 0; frame++)
                    game.Frame();
                Expect.True(game.Host.Transport.ServerRoundTripMs(1) > 0 && game.Host.Transport.ServerRoundTripMs(1) < 5000,
                    "the server has measured a round trip");
                Expect.True(game.Clients[0].Transport.ClientRoundTripMs > 0, "the client has measured a round trip");
                Expect.Equal(game.Host.Transport.Port, (ushort)game.Host.Transport.ServerUri().Port);
                Expect.Equal("rakwire", game.Host.Transport.ServerUri().Scheme);
                Expect.True(game.Host.Transport.Available(), "the transport is available");
                Expect.Equal(1024, game.Host.Transport.GetBatchThreshold(Channels.Reliable));
                foreach (int channel in new[] { Channels.Reliable, Channels.Unreliable })
                {
                    int longest = game.Host.Transport.GetMaxPacketSize(channel);
                    game.Clients[0].Transport.ClientSend(new ArraySegment<byte>(new byte[longest]), channel);
                    game.WaitFor(game.Host, "data 1 " + (channel == Channels.Reliable ? "reliable" : "unreliable") + " " + longest + " bytes");
                    Expect.Equal(longest, new RakwireTransport().GetMaxPacketSize(channel));
                }
            }
        }

        [Test]
        static void failed_attempts_report_an_error_and_a_disconnect()
        {
            using (var game = new Game())
            {
                RakwireTransport client = game.Clients[0].Transport;
                client.ClientConnect("no.such.host.invalid");
                game.WaitFor(game.Clients[0], "error DnsResolve");
                game.WaitFor(game.Clients[0], "disconnected");
                game.Host.Transport.Password = "right";
                game.Host.Transport.ServerStart();
                client.ClientConnect("127.0.0.1");
                game.WaitFor(game.Clients[0], "error Refused");
                game.WaitFor(game.Clients[0], "disconnected");
                client.Password = "right";
                client.ClientConnect("127.0.0.1");
                game.WaitFor(game.Clients[0], "connected");
                game.Host.Transport.ServerStop();
                game.WaitFor(game.Clients[0], "disconnected");
                client.ClientConnect("127.0.0.1");
                game.WaitFor(game.Clients[0], "error Refused");
                game.WaitFor(game.Clients[0], "disconnected");
            }
        }

        [Test]
        static void an_unresponsive_client_times_out()
        {
            using (var game = new Game())
            {
                game.Host.Transport.TimeoutMs = 300;
                game.Host.Transport.ServerStart();
                game.Connect();
                DateTime end = DateTime.UtcNow.AddSeconds(20);
                while (game.Host.Calls.Count < 4 && DateTime.UtcNow < end)
                {
                    Thread.Sleep(1);
                    game.Host.Frame();
                }
                game.WaitFor(game.Host, "error 1 Timeout");
                game.WaitFor(game.Host, "disconnected 1");
            }
        }

        [Test]
        static void a_disabled_transport_delivers_its_messages_after_it_is_enabled()
        {
            using (Game game = new Game().Connect())
            {
                game.Host.Transport.enabled = false;
                game.Clients[0].Transport.ClientSend(Segment(7), Channels.Reliable);
                game.Settle();
                Expect.Equal(0, game.Host.Calls.Count);
                game.Host.Transport.enabled = true;
                game.WaitFor(game.Host, "data 1 reliable 07");
            }
        }

        [Test]
        static void a_handler_can_stop_the_transport()
        {
            using (Game game = new Game().Connect())
            {
                game.Host.Transport.OnServerDataReceived = (id, data, channel) => game.Host.Transport.ServerStop();
                game.Clients[1].Transport.OnClientDataReceived = (data, channel) => game.Clients[1].Transport.Shutdown();
                game.Host.Transport.ServerSend(2, Segment(1), Channels.Reliable);
                game.Host.Transport.ServerSend(2, Segment(2), Channels.Reliable);
                game.WaitFor(game.Host, "disconnected 2");
                game.Clients[0].Transport.ClientSend(Segment(1), Channels.Reliable);
                game.WaitFor(game.Clients[0], "disconnected");
                Expect.True(!game.Host.Transport.ServerActive(), "the server has stopped");
            }
        }

        [Test]
        static void a_message_that_is_too_long_closes_the_connection_with_an_error()
        {
            using (Game game = new Game().Connect())
            {
                game.Host.Transport.ServerSend(1, new ArraySegment<byte>(new byte[80000000]), Channels.Reliable);
                game.WaitFor(game.Host, "error 1 InvalidSend");
                game.WaitFor(game.Host, "disconnected 1");
                game.Clients[1].Transport.ClientSend(new ArraySegment<byte>(new byte[80000000]), Channels.Reliable);
                game.WaitFor(game.Clients[1], "error InvalidSend");
                game.WaitFor(game.Clients[1], "disconnected");
            }
        }
    }
}
