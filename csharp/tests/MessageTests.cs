using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;

namespace Rakwire.Tests
{
    static class MessageTests
    {
        [Test]
        static void messages_are_echoed_with_each_reliability_and_priority()
        {
            using (var pair = Pair.Connected())
                foreach (Reliability reliability in Enum.GetValues(typeof(Reliability)))
                    for (byte channel = 0; channel < 32; channel += 31)
                        foreach (Priority priority in Enum.GetValues(typeof(Priority)))
                        {
                            byte[] message = { 0x86, (byte)reliability, channel, (byte)priority };
                            uint receipt = pair.Client.Send(pair.There, message, reliability, channel, priority);
                            Expect.Equal(reliability >= Reliability.UnreliableWithReceipt, receipt != 0);
                            Seen there = pair.WaitFor(pair.Server, EventKind.Message);
                            Expect.Bytes(message, there.Data);
                            Expect.Equal(pair.Back, there.Connection);
                            bool isOrdered = there.Reliability == Reliability.ReliableOrdered
                                || there.Reliability == Reliability.ReliableSequenced || there.Reliability == Reliability.UnreliableSequenced;
                            Expect.Equal(isOrdered ? channel : (byte)0, there.Channel);
                            pair.Server.Send(pair.Back, there.Data, there.Reliability, there.Channel);
                            Expect.Bytes(message, pair.WaitFor(pair.Client, EventKind.Message).Data);
                        }
        }

        /// <summary>When the server replies, the connection is already closed. The server in the README therefore uses
        /// TrySend, because Send throws.</summary>
        [Test]
        static void try_send_to_a_client_that_disconnected_in_the_same_frame_returns_not_connected()
        {
            using (var pair = Pair.Connected())
            {
                // An acknowledgement of a reliable message would delay the disconnect.
                pair.Client.Send(pair.There, new byte[] { 0x86, 7 }, Reliability.Unreliable);
                pair.Client.Disconnect(pair.There);
                // The client disconnects in a later frame than it sends. The server receives both in one frame.
                for (int frame = 0; frame < 50; frame++)
                {
                    pair.Client.Flush();
                    Thread.Sleep(2);
                    pair.Client.Update();
                    while (pair.Client.Poll(out var unused)) { }
                }
                bool isAnswered = false, isOver = false;
                for (int frame = 0; frame < 10000 && !isOver; frame++)
                {
                    Thread.Sleep(1);
                    pair.Server.Update();
                    while (pair.Server.Poll(out var e))
                    {
                        isOver |= e.Kind == EventKind.Disconnected;
                        if (e.Kind != EventKind.Message)
                            continue;
                        isAnswered = true;
                        Connection from = e.Connection;
                        Expect.Equal(ErrorCode.NotConnected, pair.Server.TrySend(from, e.Data, e.Reliability, e.Channel));
                        Expect.Fails(ErrorCode.NotConnected, () => pair.Server.Send(from, new byte[] { 0x86 }));
                    }
                    pair.Server.Flush();
                }
                Expect.True(isAnswered && isOver, "the message and the disconnect have arrived");
            }
        }

        [Test]
        static void a_large_message_arrives_unchanged()
        {
            using (var pair = Pair.Connected())
            {
                byte[] large = Enumerable.Range(0, 300000).Select(at => (byte)(0x86 + at % 100)).ToArray();
                pair.Client.Send(pair.There, large);
                Expect.Bytes(large, pair.WaitFor(pair.Server, EventKind.Message).Data);
            }
        }

        [Test]
        static void array_segments_and_slices_can_be_sent()
        {
            using (var pair = Pair.Connected())
            {
                byte[] array = { 1, 2, 0x86, 7, 9 };
                pair.Client.Send(pair.There, new ArraySegment<byte>(array, 2, 2));
                Expect.Bytes(new byte[] { 0x86, 7 }, pair.WaitFor(pair.Server, EventKind.Message).Data);
                Span<byte> onStack = stackalloc byte[3];
                onStack[0] = 0x87;
                pair.Client.Send(pair.There, onStack.Slice(0, 2));
                Expect.Bytes(new byte[] { 0x87, 0 }, pair.WaitFor(pair.Server, EventKind.Message).Data);
            }
        }

        [Test]
        static void copy_to_reuses_the_array()
        {
            using (var pair = Pair.Connected())
            {
                byte[] array = null;
                byte[] before = null;
                for (int round = 0; round < 2; round++)
                {
                    pair.Client.Send(pair.There, new byte[] { 0x86, (byte)round });
                    pair.Client.Flush();
                    ArraySegment<byte> copy = default(ArraySegment<byte>);
                    while (copy.Array == null)
                    {
                        pair.Server.Update();
                        while (pair.Server.Poll(out var e))
                            if (e.Kind == EventKind.Message)
                                copy = e.CopyTo(ref array);
                    }
                    Expect.Bytes(new byte[] { 0x86, (byte)round }, copy);
                    Expect.True(before == null || before == array, "CopyTo reuses the array");
                    before = array;
                }
            }
        }

        [Test]
        static void kept_messages_stay_valid_after_later_polls()
        {
            using (var pair = Pair.Connected())
            {
                for (byte number = 0; number < 3; number++)
                    pair.Client.Send(pair.There, new byte[] { 0x86, number });
                pair.Client.Flush();
                var kept = new KeptMessage[3];
                for (int count = 0; count < 3;)
                {
                    pair.Server.Update();
                    while (pair.Server.Poll(out var e))
                        if (e.Kind == EventKind.Message)
                            kept[count++] = e.Keep();
                }
                Expect.Equal(3ul, pair.Server.Stats().BorrowedMessages);
                for (byte number = 0; number < 3; number++)
                    Expect.Bytes(new byte[] { 0x86, number }, kept[number].Data);
                kept[1].Dispose();
                kept[1].Dispose();
                Expect.Equal(2ul, pair.Server.Stats().BorrowedMessages);
                Expect.Throws<ObjectDisposedException>(() => kept[1].Data.ToArray());
                Expect.Bytes(new byte[] { 0x86, 2 }, kept[2].Data);
                pair.Server.Dispose();
                Expect.Throws<ObjectDisposedException>(() => kept[2].Data.ToArray());
                kept[2].Dispose();
            }
        }

        [Test]
        static void messages_of_several_batches_arrive_in_order_and_stay_valid_when_kept()
        {
            const int Count = 500;
            using (var pair = Pair.Connected())
            {
                for (int number = 0; number < Count; number++)
                    pair.Client.Send(pair.There, new byte[] { 0x86, (byte)number, (byte)(number >> 8) });
                pair.Client.Flush();
                var kept = new List<KeptMessage>();
                ulong mostBorrowed = 0;
                for (int count = 0; count < Count;)
                {
                    pair.Server.Update();
                    while (pair.Server.Poll(out var e))
                        if (e.Kind == EventKind.Message)
                        {
                            Expect.Bytes(new byte[] { 0x86, (byte)count, (byte)(count >> 8) }, e.Data);
                            mostBorrowed = Math.Max(mostBorrowed, pair.Server.Stats().BorrowedMessages);
                            if (count++ % 100 == 0)
                                kept.Add(e.Keep());
                        }
                    pair.Server.Flush();
                    pair.Client.Update();
                }
                Expect.True(mostBorrowed > 5, "the library returned several events at once");
                Expect.Equal((ulong)kept.Count, pair.Server.Stats().BorrowedMessages);
                for (int number = 0; number < Count; number += 100)
                    Expect.Bytes(new byte[] { 0x86, (byte)number, (byte)(number >> 8) }, kept[number / 100].Data);
                foreach (KeptMessage message in kept)
                    message.Dispose();
                Expect.Equal(0ul, pair.Server.Stats().BorrowedMessages);
            }
        }

        [Test]
        static void events_that_wait_for_poll_belong_to_the_thread_and_end_with_the_endpoint()
        {
            using (var pair = Pair.Connected())
            {
                for (byte number = 0; number < 3; number++)
                    pair.Client.Send(pair.There, new byte[] { 0x86, number });
                pair.Client.Flush();
                bool isFirst = false;
                while (!isFirst)
                {
                    pair.Server.Update();
                    isFirst = pair.Server.Poll(out var e) && e.Kind == EventKind.Message;
                }
                Expect.True(pair.Server.Stats().BorrowedMessages > 1, "further events wait for Poll");
                Exception thrown = null;
                var elsewhere = new Thread(() =>
                {
                    try
                    {
                        pair.Server.Poll(out var e);
                    }
                    catch (Exception exception)
                    {
                        thrown = exception;
                    }
                });
                elsewhere.Start();
                elsewhere.Join();
                Expect.Equal(ErrorCode.Thread, ((RakwireException)thrown).Code);
                Expect.True(pair.Server.Poll(out var second), "the next event");
                Expect.Bytes(new byte[] { 0x86, 1 }, second.Data);
                pair.Server.Dispose();
                Expect.Fails(ErrorCode.Handle, () => pair.Server.Poll(out var third));
            }
        }

        [Test]
        static void an_event_can_be_kept_only_once()
        {
            using (var pair = Pair.Connected())
            {
                pair.Client.Send(pair.There, new byte[] { 0x86 });
                pair.Client.Flush();
                for (bool isKept = false; !isKept;)
                {
                    pair.Server.Update();
                    while (!isKept && pair.Server.Poll(out var e))
                        if (e.Kind == EventKind.Message)
                        {
                            KeptMessage kept = e.Keep();
                            isKept = true;
                            bool thrown = false;
                            try
                            {
                                e.Keep();
                            }
                            catch (ObjectDisposedException)
                            {
                                thrown = true;
                            }
                            Expect.True(thrown, "a second Keep throws");
                            pair.Server.Poll(out var next);
                            Expect.Bytes(new byte[] { 0x86 }, kept.Data);
                            kept.Dispose();
                            Expect.Equal(0ul, pair.Server.Stats().BorrowedMessages);
                        }
                }
            }
        }

        [Test]
        static void bytes_of_an_event_are_inaccessible_after_the_next_poll()
        {
            using (var pair = Pair.Connected())
            {
                pair.Client.Send(pair.There, new byte[] { 0x86 });
                pair.Client.Flush();
                for (;;)
                {
                    pair.Server.Update();
                    if (!pair.Server.Poll(out var e) || e.Kind != EventKind.Message)
                        continue;
                    Expect.Equal(1, e.Data.Length);
                    Expect.Equal(1ul, pair.Server.Stats().BorrowedMessages);
                    pair.Server.Poll(out var next);
                    Expect.Equal(0, next.Data.Length);
                    Expect.Equal(0ul, pair.Server.Stats().BorrowedMessages);
                    bool thrown = false;
                    try
                    {
                        e.Data.ToArray();
                    }
                    catch (ObjectDisposedException)
                    {
                        thrown = true;
                    }
                    Expect.True(thrown, "Data throws after the next Poll");
                    return;
                }
            }
        }

        [Test]
        static void a_broadcast_reaches_all_connections_except_one()
        {
            using (var pair = Pair.Connected())
            using (var third = new Endpoint(Pair.ClientOptions()))
            {
                third.Connect(pair.ServerAddress);
                Connection other = default(Connection);
                while (other.IsNone)
                {
                    third.Update();
                    while (third.Poll(out var unused)) { }
                    pair.Server.Update();
                    while (pair.Server.Poll(out var e))
                        if (e.Kind == EventKind.Connected)
                            other = e.Connection;
                }
                Expect.Equal(2, pair.Server.Broadcast(new byte[] { 0x86 }, out uint refused, Reliability.Reliable));
                Expect.Equal(0u, refused);
                Expect.Equal(1, pair.Server.Broadcast(new byte[] { 0x87 }, except: other));
                Expect.Bytes(new byte[] { 0x86 }, pair.WaitFor(pair.Client, EventKind.Message).Data);
                Expect.Bytes(new byte[] { 0x87 }, pair.WaitFor(pair.Client, EventKind.Message).Data);
                var all = new Connection[8];
                Expect.Equal(2, pair.Server.Connections(all));
                Expect.True(all.Contains(other) && all.Contains(pair.Back), "both connections are listed");
                Expect.Fails(ErrorCode.Buffer, () => pair.Server.Connections(new Connection[1]));
                Expect.Fails(ErrorCode.Buffer, () => pair.Server.Connections(default(Span<Connection>)));
            }
        }

        [Test]
        static void connection_info_and_statistics_describe_the_connection()
        {
            using (var pair = Pair.Connected())
            {
                pair.Client.Send(pair.There, new byte[] { 0x86, 1, 2 });
                Expect.Equal(1u, pair.Client.Stats(pair.There).WaitingMessages(Priority.Medium));
                Expect.Equal(0u, pair.Client.Stats(pair.There).WaitingMessages(Priority.High));
                Expect.True(pair.Client.Stats(pair.There).WaitingBytes(Priority.Medium) >= 3, "the queued bytes are counted");
                pair.Client.Flush();
                Expect.Equal(0u, pair.Client.Stats(pair.There).WaitingMessages(Priority.Medium));
                pair.WaitFor(pair.Server, EventKind.Message);
                ConnectionInfo info = pair.Client.Info(pair.There);
                Expect.Equal(Side.Client, info.Side);
                Expect.Equal(ConnectionState.Connected, info.State);
                Expect.Equal(pair.Server.LocalAddress, info.Address);
                Expect.Equal(pair.Server.Guid, info.Guid);
                Expect.True(info.Mtu >= 576 && info.Mtu <= 1492 && info.MaxMessageLen > 1000000,
                    "the MTU and the maximum message length are in range");
                Expect.Equal(Side.Server, pair.Server.Info(pair.Back).Side);
                ConnectionStats stats = pair.Client.Stats(pair.There);
                Expect.True(stats.MessagesSent >= 1 && stats.BytesPushed >= 3 && stats.ActualBytesSent > 100 && stats.Mtu == info.Mtu,"the client has counted the sent message");
                Expect.True(stats.RoundTripUs > 0 && stats.RoundTripUs < 5000000 && stats.Loss == 0,
                    "the round-trip time is measured, and the loss is 0");
                ConnectionStats there = pair.Server.Stats(pair.Back);
                Expect.True(there.BytesProcessed >= 3 && there.BytesIgnored == 0 && there.DatagramsLate == 0,
                    "the server has counted the delivered message");
                Expect.True(stats.WaitingResendMessages == 0 && stats.WaitingResendBytes == 0, "no messages await retransmission");
                Expect.True(stats.ClockDifferenceMs != null, "the clock difference is known");
                for (int frame = 0; frame < 10000 && pair.Client.Stats(pair.There).BytesPushedLastSecond == 0; frame++)
                {
                    pair.Client.Wait(1);
                    pair.Client.Update();
                    while (pair.Client.Poll(out var unused)) { }
                }
                Expect.True(pair.Client.Stats(pair.There).BytesPushedLastSecond >= 3,
                    "the counters of the last second include the message");
                EndpointStats all = pair.Server.Stats();
                Expect.True(all.Connections == 1 && all.DatagramsReceived > 2 && all.BytesSent > 100,
                    "the endpoint has counted its traffic");
                pair.Client.SetTimeout(pair.There, 5000);
            }
        }
    }
}
