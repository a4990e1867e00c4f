using System;
using System.Net;
using System.Text;

namespace Rakwire.Tests
{
    static class EventTests
    {
        static readonly byte[] Text = Encoding.UTF8.GetBytes("snow fight");

        static EndpointOptions With(EndpointOptions options, Action<EndpointOptions> change)
        {
            change(options);
            return options;
        }

        [Test]
        static void deferred_clients_can_be_refused_ignored_and_accepted()
        {
            using (var pair = new Pair(With(Pair.ServerOptions(), options => options.DeferIncoming = true)))
            {
                pair.Client.Connect(pair.ServerAddress);
                Seen incoming = pair.WaitFor(pair.Server, EventKind.Incoming);
                Expect.Equal(pair.Client.Guid, incoming.Guid);
                Expect.Equal(pair.Client.LocalAddress, incoming.Address);
                pair.Server.Refuse(incoming.Request);
                Seen failed = pair.WaitFor(pair.Client, EventKind.ConnectFailed);
                Expect.Equal(Failure.ServerFull, (Failure)failed.Reason);
                Expect.Equal("the server is full", failed.ReasonText.Substring(0, 18));
                Expect.Fails(ErrorCode.Handle, () => pair.Server.Accept(incoming.Request));

                Connection second = pair.Client.Connect(pair.ServerAddress);
                pair.Server.Ignore(pair.WaitFor(pair.Server, EventKind.Incoming).Request);
                pair.Server.Accept(pair.WaitFor(pair.Server, EventKind.Incoming).Request);
                Seen here = pair.WaitFor(pair.Server, EventKind.Connected);
                Expect.Equal(Side.Server, here.Side);
                Expect.Equal(second, pair.WaitFor(pair.Client, EventKind.Connected).Connection);
            }
        }

        [Test]
        static void a_last_message_arrives_before_the_disconnect()
        {
            using (var pair = Pair.Connected())
            {
                pair.Client.Disconnect(pair.There, new byte[] { 0x86, 9 });
                Expect.Bytes(new byte[] { 0x86, 9 }, pair.WaitFor(pair.Server, EventKind.Message).Data);
                Seen end = pair.WaitFor(pair.Server, EventKind.Disconnected);
                Expect.Equal(DisconnectReason.Remote, (DisconnectReason)end.Reason);
                Expect.Equal(pair.Back, end.Connection);
                pair.WaitForEnd();
            }
        }

        [Test]
        static void both_sides_report_the_disconnect()
        {
            using (var pair = Pair.Connected())
            {
                pair.Client.Disconnect(pair.There);
                Expect.Equal(DisconnectReason.Local, (DisconnectReason)pair.WaitFor(pair.Client, EventKind.Disconnected).Reason);
                pair.WaitForEnd();
                Expect.Fails(ErrorCode.NotConnected, () => pair.Client.Send(pair.There, new byte[] { 0x86 }));
                Expect.Fails(ErrorCode.NoConnection, () => pair.Client.Info(pair.There));
                Expect.Fails(ErrorCode.NoConnection, () => pair.Client.Stats(pair.There));
                pair.Client.Disconnect(pair.There);
                Expect.True(!pair.Client.TryDisconnect(pair.Back) && !pair.Client.TryInfo(pair.There, out var info)
                    && !pair.Client.TryStats(pair.There, out var stats), "the Try methods return false for a closed connection");
            }
        }

        [Test]
        static void a_receipt_reports_the_acknowledgement_of_a_message()
        {
            using (var pair = Pair.Connected())
            {
                uint receipt = pair.Client.Send(pair.There, new byte[] { 0x86 }, Reliability.ReliableOrderedWithReceipt);
                Seen seen = pair.WaitFor(pair.Client, EventKind.Receipt);
                Expect.Equal(receipt, seen.Receipt);
                Expect.Equal(Outcome.Acknowledged, seen.Outcome);
                Expect.Equal(ErrorCode.Ok, pair.Client.TrySend(pair.There, new byte[] { 0x86 }, out uint second, Reliability.ReliableWithReceipt));
                Expect.Equal(second, pair.WaitFor(pair.Client, EventKind.Receipt).Receipt);
            }
        }

        [Test]
        static void large_messages_report_their_progress()
        {
            using (var pair = Pair.Connected(With(Pair.ServerOptions(), options => options.ProgressInterval = 10)))
            {
                var large = new byte[200000];
                large[0] = 0x86;
                pair.Client.Send(pair.There, large);
                Seen progress = pair.WaitFor(pair.Server, EventKind.Progress);
                Expect.True(progress.ProgressDone >= 10 && progress.ProgressParts > 100 && !progress.IsOutgoing,
                    "the event reports at least 10 of more than 100 received parts");
            }
        }

        [Test]
        static void a_ping_is_answered_with_the_advertisement()
        {
            using (var pair = new Pair())
            {
                pair.Server.SetAdvertisement(Text);
                pair.Client.Ping(pair.Server.LocalAddress);
                Seen pong = pair.WaitFor(pair.Client, EventKind.Pong);
                Expect.Bytes(Text, pong.Data);
                Expect.Equal(pair.Server.Guid, pong.Guid);
                Expect.True(pong.LatencyUs > 0, "the pong has a latency");
                pair.Client.Discover(pair.Server.LocalAddress, true);
                Expect.Bytes(Text, pair.WaitFor(pair.Client, EventKind.Pong).Data);
            }
        }

        [Test]
        static void peers_without_a_connection_exchange_messages_and_advertisements()
        {
            var options = With(Pair.ServerOptions(), server => server.OutOfBand = true);
            using (var pair = new Pair(options, With(Pair.ClientOptions(), client => client.OutOfBand = true)))
            {
                pair.Client.SendOutOfBand(pair.Server.LocalAddress, Text);
                Seen message = pair.WaitFor(pair.Server, EventKind.OutOfBand);
                Expect.Bytes(Text, message.Data);
                Expect.Equal(pair.Client.LocalAddress, message.Address);
                pair.Server.Advertise(message.Address, Text);
                Expect.Bytes(Text, pair.WaitFor(pair.Client, EventKind.Advertisement).Data);
                pair.Server.Advertise(message.Address, default(ReadOnlySpan<byte>));
                Expect.Equal(0, pair.WaitFor(pair.Client, EventKind.Advertisement).Data.Length);
            }
        }

        [Test]
        static void a_wrong_password_is_reported_on_both_sides()
        {
            using (var pair = new Pair(With(Pair.ServerOptions(), server => server.Password = Text)))
            {
                pair.Client.Connect(pair.ServerAddress);
                Seen refused = pair.WaitFor(pair.Server, EventKind.Refused);
                Expect.Equal(Refusal.Password, (Refusal)refused.Reason);
                Expect.Equal(Failure.Password, (Failure)pair.WaitFor(pair.Client, EventKind.ConnectFailed).Reason);
                pair.Connect(new ConnectOptions { Password = Text });
                pair.Client.Disconnect(pair.There);
                pair.WaitFor(pair.Client, EventKind.Disconnected);
                pair.Server.SetPassword(default(ReadOnlySpan<byte>));
                pair.Connect();
            }
        }

        [Test]
        static void a_banned_client_is_refused_and_unban_removes_the_ban()
        {
            using (var pair = new Pair())
            {
                pair.Server.Ban("127.0.0.*");
                Expect.True(pair.Server.IsBanned(pair.Client.LocalAddress), "the client is banned");
                pair.Client.Connect(pair.ServerAddress);
                Seen failed = pair.WaitFor(pair.Client, EventKind.ConnectFailed);
                Expect.Equal(Failure.Banned, (Failure)failed.Reason);
                Expect.Equal("the server has banned this address", failed.ReasonText);
                Expect.True(pair.Server.Unban("127.0.0.*") && !pair.Server.Unban("127.0.0.*"),
                    "Unban returns true only for an existing ban");
                Expect.True(!pair.Server.IsBanned(pair.Client.LocalAddress), "the client is no longer banned");
            }
        }

        [Test]
        static void the_network_simulator_delays_messages()
        {
            var server = With(Pair.ServerOptions(), options => options.Simulate = "latency=60ms,seed=7");
            if ((Library.Features & Features.Sim) == 0)
            {
                Expect.Fails(ErrorCode.Unsupported, () => new Endpoint(server));
                return;
            }
            using (var pair = Pair.Connected(server))
            {
                pair.Client.Send(pair.There, new byte[] { 0x86 });
                pair.WaitFor(pair.Server, EventKind.Message);
                Expect.True(pair.Client.Stats(pair.There).LowestPingUs >= 60000,
                    "the lowest ping is at least the simulated latency");
            }
        }

        [Test]
        static void connecting_to_a_closed_port_fails_immediately()
        {
            using (var pair = new Pair())
            {
                string closed = pair.ServerAddress;
                pair.Server.Dispose();
                pair.Client.Connect(closed, new ConnectOptions { ConnectTimeoutMs = 5000, Attempts = 3, IntervalMs = 100 });
                for (;;)
                {
                    pair.Client.Update();
                    while (pair.Client.Poll(out var e))
                    {
                        Expect.Equal(EventKind.ConnectFailed, e.Kind);
                        Expect.Equal(Failure.Unreachable, e.Failure);
                        return;
                    }
                }
            }
        }

        [Test]
        static void an_incompatible_server_reports_its_protocol_version()
        {
            var server = With(Pair.ServerOptions(), options => options.AcceptedVersions = new byte[] { 10 });
            using (var pair = new Pair(server))
            {
                pair.Client.Connect(pair.ServerAddress, new ConnectOptions { ProtocolVersion = 6 });
                Seen failed = pair.WaitFor(pair.Client, EventKind.ConnectFailed);
                Expect.Equal(Failure.Version, (Failure)failed.Reason);
                Expect.Equal((byte)10, failed.ServerVersion);
            }
        }

        [Test]
        static void an_unresponsive_peer_times_out()
        {
            var server = With(Pair.ServerOptions(), options => options.TimeoutMs = 300);
            using (var pair = Pair.Connected(server))
                for (;;)
                {
                    System.Threading.Thread.Sleep(1);
                    pair.Server.Update();
                    while (pair.Server.Poll(out var e))
                        if (e.Kind == EventKind.Disconnected)
                        {
                            Expect.Equal(DisconnectReason.Lost, e.DisconnectReason);
                            return;
                        }
                }
        }

        [Test]
        static void clients_connect_with_each_cookie_policy_and_pongs_can_be_disabled()
        {
            Action<Action<EndpointOptions>, Action<Pair>> server = (change, test) =>
            {
                using (var pair = new Pair(With(Pair.ServerOptions(), change)))
                    test(pair);
            };
            server(options => options.PongsPerSecond = 0, pair =>
            {
                pair.Client.Ping(pair.Server.LocalAddress);
                for (int frame = 0; frame < 100; frame++)
                {
                    pair.Server.Update();
                    pair.Client.Wait(1);
                    pair.Client.Update();
                    Expect.True(!pair.Client.Poll(out var unused), "no pong arrives");
                }
                Expect.True(pair.Server.Stats().DatagramsReceived > 0, "the server received the ping");
            });
            foreach (Cookies cookies in Enum.GetValues(typeof(Cookies)))
                server(options => { options.Cookies = cookies; options.CookiesUnvalidated = 1; }, pair => pair.Connect());
            server(options => options.Congestion = Congestion.NewReno, pair => pair.Connect());
        }

        [Test]
        static void the_outgoing_limit_delays_messages()
        {
            var client = With(Pair.ClientOptions(), options => options.OutgoingLimit = 80000);
            using (var pair = Pair.Connected(null, client))
            {
                var clock = System.Diagnostics.Stopwatch.StartNew();
                var message = new byte[10000];
                message[0] = 0x86;
                pair.Client.Send(pair.There, message);
                pair.WaitFor(pair.Server, EventKind.Message);
                Expect.True(clock.ElapsedMilliseconds > 300,
                    "10,000 bytes need more than 300 ms at 10,000 bytes per second: " + clock.ElapsedMilliseconds);
            }
        }

        [Test]
        static void invalid_headers_from_trusted_proxies_are_counted()
        {
            using (var pair = new Pair(With(Pair.ServerOptions(), options => options.TrustedProxies = "127.0.0.0/8")))
            using (var socket = new System.Net.Sockets.UdpClient())
            {
                // The signature of PROXY version 2, followed by a wrong version 3.
                byte[] header = Encoding.ASCII.GetBytes("\r\n\r\n\0\r\nQUIT\n\x31\x12\0\0");
                socket.Send(header, header.Length, pair.Server.LocalAddress.ToIPEndPoint());
                for (int frame = 0; frame < 10000 && pair.Server.Stats().ProxyHeadersRefused == 0; frame++)
                {
                    pair.Server.Wait(1);
                    pair.Server.Update();
                }
                Expect.Equal(1ul, pair.Server.Stats().ProxyHeadersRefused);
            }
        }

        [Test]
        static void wait_returns_after_a_datagram_or_the_time_limit()
        {
            using (var pair = new Pair())
            {
                Expect.True(!pair.Server.Wait(5), "Wait returns false without a datagram");
                Expect.True(pair.Server.TimeoutUs == null, "an endpoint without connections has no timer");
                pair.Client.Connect(pair.ServerAddress);
                pair.Client.Flush();
                Expect.True(pair.Client.TimeoutUs <= 500000, "the next request is due within 500 ms");
                Expect.True(pair.Server.Wait(Endpoint.Forever), "Wait returns true after a datagram");
                Expect.True(pair.Server.Socket != pair.Client.Socket && pair.Client.Socket.ToInt64() > 0,
                    "each endpoint has its own socket");
            }
        }

        [Test]
        static void dropped_datagrams_are_counted_by_reason()
        {
            using (var pair = Pair.Connected())
            using (var socket = new System.Net.Sockets.UdpClient())
            {
                Expect.Equal(0, pair.Server.Drops().Count);
                Expect.Equal("", pair.Server.Advice);
                socket.Send(new byte[] { 0x01 }, 1, pair.Server.LocalAddress.ToIPEndPoint());
                for (int frame = 0; frame < 10000 && pair.Server.Drops().Count == 0; frame++)
                {
                    pair.Server.Wait(1);
                    pair.Server.Update();
                }
                ulong all = 0;
                foreach (var drop in pair.Server.Drops())
                {
                    Expect.True(drop.Key.Length > 3 && char.IsUpper(drop.Key[0]), "the reason has a name: " + drop.Key);
                    all += drop.Value;
                }
                Expect.Equal(1ul, all);
                Expect.Equal(all, pair.Server.Stats().DatagramsDropped);
            }
        }

        [Test]
        static void addresses_convert_both_ways()
        {
            foreach (string text in new[] { "127.0.0.1:19132", "[2001:db8::1]:9", "[::1]:65535" })
            {
                Address address = Address.Parse(text);
                Expect.Equal(text, address.ToString());
                Expect.Equal(text, address.ToIPEndPoint().ToString());
                Expect.Equal(address, Address.From(address.ToIPEndPoint()));
                Expect.Equal(address.GetHashCode(), Address.Parse(text).GetHashCode());
            }
            var local = new IPEndPoint(IPAddress.Parse("fe80::1%3"), 7);
            Expect.Equal(local, Address.From(local).ToIPEndPoint());
            Expect.True(!Address.Parse("127.0.0.1:1").Equals(Address.Parse("127.0.0.2:1")), "different addresses are not equal");
            Expect.Equal("", default(Address).ToString());
            Expect.Equal<IPEndPoint>(null, default(Address).ToIPEndPoint());
        }

        [Test]
        static void options_have_the_defaults_of_the_library_and_keep_their_values()
        {
            var options = new EndpointOptions();
            Expect.Equal(4000000u, options.MaxMessageLen);
            Expect.Equal((ushort)1492, options.Mtu);
            Expect.Equal(10000u, options.TimeoutMs);
            Expect.Equal(12u, options.ConnectAttempts);
            Expect.True(options.Cookies == Cookies.Automatic && options.Congestion == Congestion.Delay,
                "cookies and congestion control have their defaults");
            Expect.True(options.PongsPerSecond == 1000 && options.PongsPerNetwork == 20 && options.MaxHalfOpenPerNetwork == 8,
                "the limits have their defaults");
            Expect.True(options.PingIntervalMs == 5000 && options.OutgoingLimit == 0 && options.ConnectionIntervalMs == 0,
                "the times and the outgoing limit have their defaults");
            Expect.Bytes(new byte[] { 6, 10, 11 }, options.AcceptedVersions);
            Expect.True(options.FailOnUnreachable && !options.OutOfBand, "the flags have their defaults");
            options.Guid = 77;
            options.FailOnUnreachable = false;
            Expect.True(!options.FailOnUnreachable, "a flag can be cleared");
            using (var endpoint = new Endpoint(options))
                Expect.Equal(77ul, endpoint.Guid);
            Expect.Equal("0.1.0", Library.Version);
            Expect.Equal("a message needs at least one byte", Library.Describe(ErrorCode.Empty));
        }
    }
}
