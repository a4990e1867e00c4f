using System;
using System.Threading;

namespace Rakwire.Tests
{
    static class ErrorTests
    {
        static readonly byte[] Data = { 0x86, 1 };

        /// <summary>Checks that every method of an endpoint that calls the library fails with the same code.</summary>
        static void AllFail(ErrorCode code, Endpoint endpoint)
        {
            var connection = new Connection(1);
            Address address = Address.Parse("127.0.0.1:9");
            Expect.Fails(code, () => endpoint.Update());
            Expect.Fails(code, () => endpoint.Flush());
            Expect.Fails(code, () => endpoint.Poll(out var unused));
            Expect.Fails(code, () => endpoint.Wait(1));
            Expect.Fails(code, () => endpoint.TimeoutUs.ToString());
            Expect.Fails(code, () => endpoint.Socket.ToString());
            Expect.Fails(code, () => endpoint.Drops());
            Expect.Fails(code, () => endpoint.Advice.ToString());
            Expect.Fails(code, () => endpoint.LocalAddress.ToString());
            Expect.Fails(code, () => endpoint.Guid.ToString());
            Expect.Fails(code, () => endpoint.Connect("127.0.0.1:9"));
            Expect.Fails(code, () => endpoint.Connect("127.0.0.1:9", new ConnectOptions()));
            Expect.Fails(code, () => endpoint.Accept(default(Request)));
            Expect.Fails(code, () => endpoint.Refuse(default(Request)));
            Expect.Fails(code, () => endpoint.Ignore(default(Request)));
            Expect.Fails(code, () => endpoint.Send(connection, Data));
            Expect.Equal(code, endpoint.TrySend(connection, Data));
            Expect.Fails(code, () => endpoint.Broadcast(Data));
            Expect.Fails(code, () => endpoint.Disconnect(connection));
            Expect.Fails(code, () => endpoint.Disconnect(connection, Data));
            Expect.Fails(code, () => endpoint.SetTimeout(connection, 1000));
            Expect.Fails(code, () => endpoint.ConnectionCount.ToString());
            Expect.Fails(code, () => endpoint.Connections(new Connection[1]));
            Expect.Fails(code, () => endpoint.Info(connection));
            Expect.Fails(code, () => endpoint.Stats());
            Expect.Fails(code, () => endpoint.Stats(connection));
            Expect.Fails(code, () => endpoint.SecurePeer(connection));
            Expect.Fails(code, () => endpoint.Ping(address));
            Expect.Fails(code, () => endpoint.Discover(address));
            Expect.Fails(code, () => endpoint.SetAdvertisement(Data));
            Expect.Fails(code, () => endpoint.Advertise(address, Data));
            Expect.Fails(code, () => endpoint.SendOutOfBand(address, Data));
            Expect.Fails(code, () => endpoint.SetPassword(Data));
            Expect.Fails(code, () => endpoint.Ban("192.0.2.*"));
            Expect.Fails(code, () => endpoint.Unban("192.0.2.*"));
            Expect.Fails(code, () => endpoint.IsBanned(address));
        }

        [Test]
        static void all_calls_after_dispose_fail()
        {
            var endpoint = new Endpoint();
            endpoint.Dispose();
            AllFail(ErrorCode.Handle, endpoint);
            endpoint.Dispose();
        }

        [Test]
        static void all_calls_from_another_thread_fail_and_change_nothing()
        {
            using (var endpoint = new Endpoint())
            {
                Exception problem = null;
                var thread = new Thread(() =>
                {
                    try
                    {
                        AllFail(ErrorCode.Thread, endpoint);
                        Expect.Fails(ErrorCode.Thread, () => endpoint.Dispose());
                        Expect.Fails(ErrorCode.Thread, () => endpoint.Update());
                    }
                    catch (Exception error)
                    {
                        problem = error;
                    }
                });
                thread.Start();
                thread.Join();
                if (problem != null)
                    throw problem;
                endpoint.Update();
            }
        }

        [Test]
        static void send_refuses_invalid_messages_and_delivery_arguments()
        {
            using (var pair = Pair.Connected())
            {
                Expect.Fails(ErrorCode.Empty, () => pair.Client.Send(pair.There, default(ReadOnlySpan<byte>)));
                Expect.Fails(ErrorCode.Empty, () => pair.Client.Send(pair.There, new byte[0]));
                Expect.Fails(ErrorCode.ReservedId, () => pair.Client.Send(pair.There, new byte[] { 0x1A }));
                Expect.Equal(ErrorCode.ReservedId, pair.Client.TrySend(pair.There, new byte[] { 0x1A }));
                Expect.True(Library.LastError.Contains("below 0x1B"), "LastError contains the reason");
                var endless = new byte[80000000];
                endless[0] = 0x86;
                Expect.Fails(ErrorCode.TooLong, () => pair.Client.Send(pair.There, endless));
                Expect.Fails(ErrorCode.Argument, () => pair.Client.Send(pair.There, Data, channel: 32));
                Expect.Fails(ErrorCode.Argument, () => pair.Client.Send(pair.There, Data, (Reliability)8));
                Expect.Fails(ErrorCode.Argument, () => pair.Client.Send(pair.There, Data, priority: (Priority)4));
            }
        }

        [Test]
        static void handles_of_other_endpoints_and_unopened_connections_are_refused()
        {
            using (var pair = Pair.Connected())
            {
                Expect.Fails(ErrorCode.NoConnection, () => pair.Client.Send(default(Connection), Data));
                Expect.Fails(ErrorCode.NoConnection, () => pair.Client.Send(pair.Back, Data));
                Expect.Fails(ErrorCode.NoConnection, () => pair.Client.Info(pair.Back));
                Connection attempt = pair.Server.Connect("127.0.0.1:9", new ConnectOptions { Attempts = 1 });
                Expect.Fails(ErrorCode.NotConnected, () => pair.Server.Send(attempt, Data));
            }
        }

        [Test]
        static void a_full_send_queue_accepts_messages_again_after_updates()
        {
            using (var pair = Pair.Connected())
            {
                var message = new byte[100000];
                message[0] = 0x86;
                ErrorCode result = ErrorCode.Ok;
                for (int count = 0; count < 10000 && result == ErrorCode.Ok; count++)
                    result = pair.Client.TrySend(pair.There, message);
                Expect.Equal(ErrorCode.NoRoom, result);
                pair.WaitFor(pair.Server, EventKind.Message);
                for (int frame = 0; frame < 10000 && result != ErrorCode.Ok; frame++)
                {
                    pair.WaitFor(pair.Server, EventKind.Message);
                    result = pair.Client.TrySend(pair.There, message);
                }
                Expect.Equal(ErrorCode.Ok, result);
            }
        }

        [Test]
        static void invalid_addresses_are_refused()
        {
            using (var pair = new Pair())
            {
                Expect.Fails(ErrorCode.Address, () => pair.Client.Connect("nonsense"));
                Expect.Fails(ErrorCode.Null, () => pair.Client.Connect(null));
                Expect.Fails(ErrorCode.String, () => pair.Client.Connect("127.0.0.1:1\0"));
                Expect.Fails(ErrorCode.String, () => pair.Client.Connect(new string('x', 2000)));
                Expect.Fails(ErrorCode.AddressFamily, () => pair.Client.Connect("[::1]:9"));
                Expect.Fails(ErrorCode.Address, () => pair.Client.Ping(default(Address)));
                Expect.Fails(ErrorCode.Address, () => Address.Parse("127.0.0.1"));
                Expect.Fails(ErrorCode.Null, () => Address.Parse(null));
                pair.Client.Connect(pair.ServerAddress);
                Expect.Fails(ErrorCode.AlreadyConnected, () => pair.Client.Connect(pair.ServerAddress));
                Expect.Fails(ErrorCode.Bind, () => new Endpoint(new EndpointOptions { BindAddress = pair.ServerAddress }));
                Expect.Fails(ErrorCode.Address, () => new Endpoint(new EndpointOptions { BindAddress = "here" }));
            }
        }

        [Test]
        static void invalid_options_and_arguments_are_refused()
        {
            Expect.Fails(ErrorCode.Argument, () => new Endpoint(new EndpointOptions { Mtu = 100 }));
            Expect.Fails(ErrorCode.Argument, () => new Endpoint(new EndpointOptions { ConnectAttempts = 0 }));
            Expect.Fails(ErrorCode.Argument, () => new Endpoint(new EndpointOptions { Blocks = 1 }));
            Expect.Fails(ErrorCode.Argument, () => new Endpoint(new EndpointOptions { Cookies = (Cookies)4 }));
            Expect.Fails(ErrorCode.Argument, () => new Endpoint(new EndpointOptions { Congestion = (Congestion)2 }));
            Expect.Fails(ErrorCode.Argument, () => new Endpoint(new EndpointOptions { TrustedProxies = "everyone" }));
            Expect.Fails(ErrorCode.TooLong, () => new Endpoint(new EndpointOptions { Password = new byte[256] }));
            if ((Library.Features & Features.Sim) != 0)
                Expect.Fails(ErrorCode.Argument, () => new Endpoint(new EndpointOptions { Simulate = "rain=5%" }));
            Expect.Throws<ArgumentException>(() => new EndpointOptions { AcceptedVersions = new byte[9] });
            Expect.Throws<ArgumentException>(() => new Endpoint(new EndpointOptions { ServerKey = new byte[31] }));
            using (var endpoint = new Endpoint())
            {
                Expect.Fails(ErrorCode.TooLong, () => endpoint.SetAdvertisement(new byte[400]));
                Expect.Fails(ErrorCode.TooLong, () => endpoint.SetPassword(new byte[256]));
                Expect.Fails(ErrorCode.TooLong, () => endpoint.SendOutOfBand(Address.Parse("127.0.0.1:9"), new byte[400]));
                Expect.Fails(ErrorCode.Address, () => endpoint.Ban("everything"));
                for (int number = 0; number < 64; number++)
                    endpoint.Ban("192.0.2." + number);
                Expect.Fails(ErrorCode.Full, () => endpoint.Ban("192.0.2.64"));
            }
        }

        [Test]
        static unsafe void structs_of_wrong_size_or_alignment_are_refused()
        {
            var options = new NativeOptions();
            Expect.Equal((int)ErrorCode.Size, Native.rakwire_options_init(&options, UIntPtr.Zero));
            Expect.Equal((int)ErrorCode.Misaligned,
                Native.rakwire_options_init((NativeOptions*)((byte*)&options + 1), (UIntPtr)sizeof(NativeOptions)));
            Expect.Equal((int)ErrorCode.Null, Native.rakwire_options_init(null, (UIntPtr)sizeof(NativeOptions)));
        }

        [Test]
        static void every_error_code_has_a_description()
        {
            foreach (ErrorCode code in Enum.GetValues(typeof(ErrorCode)))
                Expect.True(code == ErrorCode.Ok || Library.Describe(code).Length > 10, code.ToString());
        }
    }
}
