using System;

namespace Rakwire.Tests
{
    static class GarbageTests
    {
        const int Messages = 100000;

        /// <summary>Sends messages from client to server and back. Calls Keep on every tenth echo.</summary>
        static void Echo(Pair pair, int messages, byte[] message)
        {
            int sent = 0, returned = 0;
            while (returned < messages)
            {
                for (int burst = 0; burst < 20 && sent < messages; burst++)
                    if (pair.Client.TrySend(pair.There, message) == ErrorCode.Ok)
                        sent++;
                pair.Client.Flush();
                pair.Server.Update();
                while (pair.Server.Poll(out var there))
                    if (there.Kind == EventKind.Message)
                        pair.Server.Send(there.Connection, there.Data, there.Reliability, there.Channel);
                pair.Server.Flush();
                pair.Client.Update();
                while (pair.Client.Poll(out var here))
                    if (here.Kind == EventKind.Message && ++returned % 10 == 0)
                        using (KeptMessage kept = here.Keep())
                            if (kept.Data.Length != message.Length)
                                throw new Exception("a kept echo has another length");
            }
        }

        [Test]
        static void sending_and_receiving_allocates_no_managed_memory()
        {
            using (var pair = Pair.Connected())
            {
                var message = new byte[64];
                message[0] = 0x86;
                Echo(pair, 2000, message);
                int collections = GC.CollectionCount(0);
                long before = GC.GetAllocatedBytesForCurrentThread();
                Echo(pair, Messages, message);
                long allocated = GC.GetAllocatedBytesForCurrentThread() - before;
                Expect.Equal(0, GC.CollectionCount(0) - collections);
                Expect.Equal(0L, allocated);
                Console.WriteLine(Messages + " messages and their echoes: " + allocated + " bytes allocated, no collection");
            }
        }

        [Test]
        static void the_allocation_counter_detects_allocations()
        {
            long before = GC.GetAllocatedBytesForCurrentThread();
            for (int count = 0; count < 1000; count++)
                GC.KeepAlive(new byte[1000]);
            Expect.True(GC.GetAllocatedBytesForCurrentThread() - before >= 1000000, "a million bytes were counted");
        }
    }
}
