// A transport for Mirror over rakwire. Put this file into a project next to Rakwire.cs, add the component to the object
// of the NetworkManager, and select it as the transport.

using System;
using System.Collections.Generic;
using System.Net;
using System.Text;
using Mirror;
using UnityEngine;

namespace Rakwire.Transports
{
    /// <summary>Carries the messages of Mirror over RakNet. Both channels share one connection.</summary>
    [DisallowMultipleComponent]
    public class RakwireTransport : Transport, PortTransport
    {
        public const string Scheme = "rakwire";
        /// <summary>The first byte of each message. RakNet reserves values below 0x86.</summary>
        const byte MessageId = 0x86;
        /// <summary>The batch size for Mirror in bytes. A message of this length fits into one datagram on typical
        /// paths.</summary>
        const int OneDatagram = 1024;

        [Tooltip("The port of the server.")]
        public ushort port = 7777;
        [Tooltip("The address that a server binds, without a port.")]
        public string ListenHost = "0.0.0.0";
        [Tooltip("The maximum number of clients of a server.")]
        public ushort MaxClients = 64;
        [Tooltip("The password of the server. Clients send it unencrypted.")]
        public string Password = "";
        [Tooltip("The maximum length of a reliable message in bytes.")]
        public int MaxReliableLength = 256 * 1024;
        [Tooltip("The time without a datagram from the peer, in milliseconds, after which a connection with unacknowledged data is lost.")]
        public uint TimeoutMs = 10000;
        [Tooltip("The maximum time, in milliseconds, to deliver the last messages when a side stops.")]
        public int StopMs = 300;

        Endpoint client, server;
        Connection toServer;
        bool isConnected;
        byte[] received;
        /// <summary>Mirror's 32-bit connection ids, keyed by connection handle.</summary>
        readonly Dictionary<ulong, int> numbers = new Dictionary<ulong, int>();
        readonly Dictionary<int, Connection> connections = new Dictionary<int, Connection>();
        int lastNumber;

        public ushort Port { get => port; set => port = value; }

        public override bool Available() => Application.platform != RuntimePlatform.WebGLPlayer;

        EndpointOptions Options() => new EndpointOptions { TimeoutMs = TimeoutMs, MaxMessageLen = (uint)MaxReliableLength + 1 };

        static byte[] Bytes(string password) => string.IsNullOrEmpty(password) ? null : Encoding.UTF8.GetBytes(password);

        static Reliability ReliabilityOf(int channelId) =>
            channelId == Channels.Unreliable ? Reliability.Unreliable : Reliability.ReliableOrdered;

        static int ChannelOf(in EndpointEvent e) => e.Reliability <= Reliability.UnreliableSequenced ? Channels.Unreliable : Channels.Reliable;

        /// <summary>Copies the message of an event without its id, for handlers that need an array segment.</summary>
        ArraySegment<byte> Payload(in EndpointEvent e)
        {
            ArraySegment<byte> message = e.CopyTo(ref received);
            return new ArraySegment<byte>(message.Array, 1, message.Count - 1);
        }

        // Client

        public override bool ClientConnected() => isConnected;

        public override void ClientConnect(string address) => Connect(address, Port);

        public override void ClientConnect(Uri uri)
        {
            if (uri.Scheme != Scheme)
                throw new ArgumentException("use " + Scheme + "://host:port, not " + uri, nameof(uri));
            Connect(uri.Host, uri.IsDefaultPort ? Port : (ushort)uri.Port);
        }

        void Connect(string host, ushort atPort)
        {
            CloseClient();
            bool isV6 = host.Contains(":");
            EndpointOptions options = Options();
            if (isV6)
                options.BindAddress = "[::]:0";
            string address = (isV6 && !host.StartsWith("[") ? "[" + host + "]" : host) + ":" + atPort;
            try
            {
                client = new Endpoint(options);
                toServer = client.Connect(address, new ConnectOptions { Password = Bytes(Password) });
            }
            catch (RakwireException error)
            {
                EndClient(error.Code == ErrorCode.Address ? TransportError.DnsResolve : TransportError.Unexpected, error.Message);
            }
        }

        public override void ClientSend(ArraySegment<byte> segment, int channelId = Channels.Reliable)
        {
            if (client == null)
                return;
            ErrorCode result = client.TrySend(toServer, MessageId, segment, ReliabilityOf(channelId));
            if (result == ErrorCode.Ok)
                OnClientDataSent?.Invoke(segment, channelId);
            else if (result != ErrorCode.NoConnection && result != ErrorCode.NotConnected)
            {
                OnClientError?.Invoke(ErrorOf(result), Library.LastError);
                if (IsFatal(result, channelId))
                    client.TryDisconnect(toServer);
            }
        }

        /// <summary>Starts closing the connection. OnClientDisconnected follows.</summary>
        public override void ClientDisconnect() => client?.TryDisconnect(toServer);

        public override void ClientEarlyUpdate()
        {
            if (!enabled || client == null)
                return;
            client.Update();
            // A handler may disable the transport or stop the client.
            while (enabled && client != null && client.Poll(out var e))
                switch (e.Kind)
                {
                    case EventKind.Connected:
                        isConnected = true;
                        OnClientConnected?.Invoke();
                        break;
                    case EventKind.Message:
                        if (e.Data[0] == MessageId)
                            OnClientDataReceived?.Invoke(Payload(e), ChannelOf(e));
                        break;
                    case EventKind.ConnectFailed:
                        EndClient(ErrorOf(e.Failure), e.ReasonText);
                        break;
                    case EventKind.Disconnected:
                        bool isUsual = e.DisconnectReason == DisconnectReason.Local || e.DisconnectReason == DisconnectReason.Remote;
                        EndClient(isUsual ? (TransportError?)null : ErrorOf(e.DisconnectReason), e.ReasonText);
                        break;
                }
        }

        public override void ClientLateUpdate() => client?.Flush();

        /// <summary>Returns the round-trip time to the server in milliseconds, or 0 without a connection.</summary>
        public double ClientRoundTripMs => client == null ? 0 : RoundTripMs(client, toServer);

        static double RoundTripMs(Endpoint endpoint, Connection connection) =>
            endpoint.TryStats(connection, out ConnectionStats stats) ? stats.RoundTripUs / 1000.0 : 0;

        void EndClient(TransportError? error, string text)
        {
            CloseClient();
            if (error != null)
                OnClientError?.Invoke(error.Value, text);
            OnClientDisconnected?.Invoke();
        }

        void CloseClient()
        {
            client?.Close(StopMs);
            client = null;
            isConnected = false;
        }

        // Server

        public override bool ServerActive() => server != null;

        public override Uri ServerUri() => new UriBuilder(Scheme, Dns.GetHostName(), Port).Uri;

        public override void ServerStart()
        {
            ServerStop();
            EndpointOptions options = Options();
            options.BindAddress = ListenHost + ":" + Port;
            options.MaxIncoming = MaxClients;
            options.Password = Bytes(Password);
            server = new Endpoint(options);
        }

        public override void ServerSend(int connectionId, ArraySegment<byte> segment, int channelId = Channels.Reliable)
        {
            if (!connections.TryGetValue(connectionId, out Connection to))
                return;
            ErrorCode result = server.TrySend(to, MessageId, segment, ReliabilityOf(channelId));
            if (result == ErrorCode.Ok)
                OnServerDataSent?.Invoke(connectionId, segment, channelId);
            else if (result != ErrorCode.NoConnection && result != ErrorCode.NotConnected)
            {
                OnServerError?.Invoke(connectionId, ErrorOf(result), Library.LastError);
                if (IsFatal(result, channelId))
                    server.TryDisconnect(to);
            }
        }

        /// <summary>Starts closing a connection. OnServerDisconnected follows.</summary>
        public override void ServerDisconnect(int connectionId)
        {
            if (connections.TryGetValue(connectionId, out Connection connection))
                server.TryDisconnect(connection);
        }

        /// <summary>Returns the IP address of a client, or an empty string if there is no such client.</summary>
        public override string ServerGetClientAddress(int connectionId) =>
            connections.TryGetValue(connectionId, out Connection one) && server.TryInfo(one, out ConnectionInfo info) ? Host(info.Address) : "";

        static string Host(Address address) => address.ToIPEndPoint().Address.ToString();

        /// <summary>Returns the round-trip time to a client in milliseconds, or 0 if there is no such client.</summary>
        public double ServerRoundTripMs(int connectionId) =>
            connections.TryGetValue(connectionId, out Connection one) ? RoundTripMs(server, one) : 0;

        public override void ServerEarlyUpdate()
        {
            if (!enabled || server == null)
                return;
            server.Update();
            // A handler may disable the transport or stop the server.
            while (enabled && server != null && server.Poll(out var e))
                switch (e.Kind)
                {
                    case EventKind.Connected:
                        numbers[e.Connection.Id] = ++lastNumber;
                        connections[lastNumber] = e.Connection;
                        OnServerConnectedWithAddress?.Invoke(lastNumber, Host(e.Address));
                        break;
                    case EventKind.Message:
                        if (e.Data[0] == MessageId && numbers.TryGetValue(e.Connection.Id, out int from))
                            OnServerDataReceived?.Invoke(from, Payload(e), ChannelOf(e));
                        break;
                    case EventKind.Disconnected:
                        if (numbers.TryGetValue(e.Connection.Id, out int gone))
                        {
                            numbers.Remove(e.Connection.Id);
                            connections.Remove(gone);
                            if (e.DisconnectReason > DisconnectReason.Remote)
                                OnServerError?.Invoke(gone, ErrorOf(e.DisconnectReason), e.ReasonText);
                            OnServerDisconnected?.Invoke(gone);
                        }
                        break;
                }
        }

        public override void ServerLateUpdate() => server?.Flush();

        public override void ServerStop()
        {
            server?.Close(StopMs);
            server = null;
            numbers.Clear();
            connections.Clear();
        }

        // Client and server

        /// <summary>Returns true if the connection must be closed: a reliable message could not be sent, or the error
        /// is not a full queue.</summary>
        static bool IsFatal(ErrorCode result, int channelId) => result != ErrorCode.NoRoom || channelId != Channels.Unreliable;

        static TransportError ErrorOf(ErrorCode result) => result == ErrorCode.NoRoom ? TransportError.Congestion : TransportError.InvalidSend;

        static TransportError ErrorOf(Failure failure)
        {
            bool isSilent = failure == Failure.NoAnswer || failure == Failure.HandshakeTimeout;
            return isSilent ? TransportError.Timeout : TransportError.Refused;
        }

        static TransportError ErrorOf(DisconnectReason reason) =>
            reason == DisconnectReason.Lost ? TransportError.Timeout : TransportError.ConnectionClosed;

        public override int GetMaxPacketSize(int channelId = Channels.Reliable) =>
            channelId == Channels.Unreliable ? OneDatagram : MaxReliableLength;

        public override int GetBatchThreshold(int channelId = Channels.Reliable) => OneDatagram;

        public override void Shutdown()
        {
            CloseClient();
            ServerStop();
        }
    }
}
