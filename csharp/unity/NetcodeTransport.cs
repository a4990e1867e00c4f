// A transport for Unity's Netcode for GameObjects 2 over rakwire. Put this file into a project next to Rakwire.cs, add
// the component to the object of the NetworkManager, and select it as the transport. For Netcode 1.x define
// RAKWIRE_NETCODE_1.

using System;
using System.Collections.Generic;
using System.Text;
using Unity.Netcode;
using UnityEngine;

namespace Rakwire.Transports
{
    /// <summary>Carries the messages of Netcode for GameObjects over RakNet.</summary>
    [AddComponentMenu("Netcode/Rakwire Transport")]
    [DisallowMultipleComponent]
    public class NetcodeTransport : NetworkTransport
    {
        /// <summary>The first byte of each message. RakNet reserves values below 0x86.</summary>
        const byte MessageId = 0x86;
        const byte OrderedChannel = 0, SequencedChannel = 1;

        [Tooltip("The server that a client connects to.")]
        public string ConnectAddress = "127.0.0.1:7777";
        [Tooltip("The address that a server binds.")]
        public string ListenAddress = "0.0.0.0:7777";
        [Tooltip("The maximum number of clients of a server.")]
        public ushort MaxClients = 64;
        [Tooltip("The password of the server. Clients send it unencrypted.")]
        public string Password = "";
        [Tooltip("The time without a datagram from the peer, in milliseconds, after which a connection with unacknowledged data is lost.")]
        public uint TimeoutMs = 10000;
        [Tooltip("The maximum time, in milliseconds, to deliver the last messages when the transport shuts down.")]
        public int ShutdownMs = 300;

        Endpoint endpoint;
        Connection server;
        bool isUpdated;
        byte[] received;
        /// <summary>Connections that Netcode has closed itself. It expects no disconnect event for them.</summary>
        readonly HashSet<ulong> ended = new HashSet<ulong>();

        public override ulong ServerClientId => 0;

        /// <summary>The endpoint, for features that Netcode does not expose. Null while the transport is not running.</summary>
        public Endpoint Endpoint => endpoint;

        public override void Initialize(NetworkManager networkManager = null) { }

        public override bool StartServer() =>
            Start(new EndpointOptions { BindAddress = ListenAddress, MaxIncoming = MaxClients, Password = Bytes(Password), TimeoutMs = TimeoutMs });

        public override bool StartClient()
        {
            if (!Start(new EndpointOptions { TimeoutMs = TimeoutMs, BindAddress = ConnectAddress.StartsWith("[") ? "[::]:0" : null }))
                return false;
            try
            {
                server = endpoint.Connect(ConnectAddress, new ConnectOptions { Password = Bytes(Password) });
                return true;
            }
            catch (RakwireException error)
            {
                Debug.LogError(error.Message);
                Shutdown();
                return false;
            }
        }

        bool Start(EndpointOptions options)
        {
            Shutdown();
            try
            {
                endpoint = new Endpoint(options);
                return true;
            }
            catch (RakwireException error)
            {
                Debug.LogError(error.Message);
                return false;
            }
        }

        static byte[] Bytes(string password) => string.IsNullOrEmpty(password) ? null : Encoding.UTF8.GetBytes(password);

        Connection ConnectionOf(ulong clientId) => clientId == ServerClientId ? server : new Connection(clientId);

        public override void Send(ulong clientId, ArraySegment<byte> payload, NetworkDelivery delivery)
        {
            if (endpoint == null)
                return;
            Connection to = ConnectionOf(clientId);
            Reliability reliability = ReliabilityOf(delivery);
            byte channel = reliability == Reliability.UnreliableSequenced ? SequencedChannel : OrderedChannel;
            ErrorCode result = endpoint.TrySend(to, MessageId, payload, reliability, channel);
            // Netcode may send to a connection that has just closed.
            if (result == ErrorCode.Ok || result == ErrorCode.NoConnection || result == ErrorCode.NotConnected)
                return;
            bool isDropped = result == ErrorCode.NoRoom && delivery <= NetworkDelivery.UnreliableSequenced;
            if (isDropped)
                return;
            // Without this reliable message the states of both sides would differ, so the connection is closed.
            Debug.LogError("Connection " + clientId + " is closed, because a reliable message could not be sent: " + Library.LastError);
            endpoint.Disconnect(to);
        }

        static Reliability ReliabilityOf(NetworkDelivery delivery)
        {
            switch (delivery)
            {
                case NetworkDelivery.Unreliable: return Reliability.Unreliable;
                case NetworkDelivery.UnreliableSequenced: return Reliability.UnreliableSequenced;
                case NetworkDelivery.Reliable: return Reliability.Reliable;
                default: return Reliability.ReliableOrdered;
            }
        }

        public override NetworkEvent PollEvent(out ulong clientId, out ArraySegment<byte> payload, out float receiveTime)
        {
            clientId = ServerClientId;
            payload = default(ArraySegment<byte>);
            receiveTime = Time.realtimeSinceStartup;
            while (endpoint != null)
            {
                while (endpoint.Poll(out var e))
                {
                    NetworkEvent kind = Translate(e, ref payload);
                    if (kind == NetworkEvent.Nothing)
                        continue;
                    clientId = server.IsNone ? e.Connection.Id : ServerClientId;
                    return kind;
                }
                // Netcode polls until there is no event. The endpoint is updated once per such round.
                isUpdated = !isUpdated;
                if (!isUpdated)
                    break;
                endpoint.Update();
            }
            return NetworkEvent.Nothing;
        }

        NetworkEvent Translate(in EndpointEvent e, ref ArraySegment<byte> payload)
        {
            switch (e.Kind)
            {
                case EventKind.Connected:
                    return NetworkEvent.Connect;
                case EventKind.Message:
                    if (e.Data[0] != MessageId)
                        return NetworkEvent.Nothing;
                    ArraySegment<byte> message = e.CopyTo(ref received);
                    payload = new ArraySegment<byte>(message.Array, 1, message.Count - 1);
                    return NetworkEvent.Data;
                case EventKind.ConnectFailed:
                    Debug.LogWarning(e.ReasonText);
                    return NetworkEvent.Disconnect;
                case EventKind.Disconnected:
                    return ended.Remove(e.Connection.Id) ? NetworkEvent.Nothing : NetworkEvent.Disconnect;
                default:
                    return NetworkEvent.Nothing;
            }
        }

#if RAKWIRE_NETCODE_1
        void LateUpdate() => endpoint?.Flush();
#else
        protected override void OnPostLateUpdate() => endpoint?.Flush();
#endif

        public override void DisconnectRemoteClient(ulong clientId)
        {
            var connection = new Connection(clientId);
            if (endpoint == null || !endpoint.TryInfo(connection, out ConnectionInfo info) || info.State == ConnectionState.Disconnected)
                return;
            endpoint.Disconnect(connection);
            ended.Add(clientId);
        }

        public override void DisconnectLocalClient() => endpoint?.TryDisconnect(server);

        /// <summary>Returns the round-trip time in milliseconds, rounded up; 0 for a closed connection.</summary>
        public override ulong GetCurrentRtt(ulong clientId) =>
            endpoint != null && endpoint.TryStats(ConnectionOf(clientId), out ConnectionStats stats) ? (stats.RoundTripUs + 999) / 1000 : 0;

        /// <summary>Returns the maximum payload length in bytes that <see cref="Send"/> accepts for a connection.</summary>
        public int MaxPayload(ulong clientId) => (int)endpoint.Info(ConnectionOf(clientId)).MaxMessageLen - 1;

        /// <summary>Disconnects all connections, waits at most <see cref="ShutdownMs"/> for acknowledgements, and
        /// closes the socket.</summary>
        public override void Shutdown()
        {
            endpoint?.Close(ShutdownMs);
            endpoint = null;
            server = default(Connection);
            isUpdated = false;
            ended.Clear();
        }

        void OnDestroy() => Shutdown();
    }
}
