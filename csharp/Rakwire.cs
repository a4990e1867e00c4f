// rakwire for C#: RakNet over UDP, based on the C library of rakwire (capi/ in its repository). A single file for .NET
// Standard 2.1, compiled with unsafe code allowed.
//
//     var server = new Endpoint(new EndpointOptions { BindAddress = "0.0.0.0:19132", MaxIncoming = 64 });
//     for (;;) { // each frame
//         server.Update();
//         while (server.Poll(out var e))
//             if (e.Kind == EventKind.Message)
//                 server.TrySend(e.Connection, e.Data, e.Reliability, e.Channel);
//         server.Flush();
//     }
//
// The server uses TrySend, because Send throws when the client has disconnected in the same update or does not read.
//
// An endpoint works only while one of its methods runs, and belongs to the thread that opened it. Errors are thrown as
// RakwireException with the library's description, except where a method returns an ErrorCode. Sending and receiving
// allocate no managed memory: received bytes are borrowed from the library until the next Poll or, after Keep, until
// they are disposed.

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Net;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

namespace Rakwire
{
    /// <summary>The result of a call: <c>RAKWIRE_OK</c> or a <c>RAKWIRE_ERROR_</c> value of the C library.</summary>
    public enum ErrorCode
    {
        Ok = 0, Null = -1, Misaligned = -2, Size = -3, Handle = -4, Thread = -5, Argument = -6, String = -7, NoConnection = -8,
        NotConnected = -9, Address = -10, AddressFamily = -11, Bind = -12, AlreadyConnected = -13, Full = -14, Empty = -15,
        ReservedId = -16, TooLong = -17, NoRoom = -18, Unsupported = -19, System = -20, Buffer = -21, Security = -22, Bug = -23,
    }

    /// <summary>The delivery guarantee of a message. With a receipt, an event reports whether the message was
    /// acknowledged.</summary>
    public enum Reliability : byte
    {
        Unreliable = 0, UnreliableSequenced = 1, Reliable = 2, ReliableOrdered = 3, ReliableSequenced = 4,
        UnreliableWithReceipt = 5, ReliableWithReceipt = 6, ReliableOrderedWithReceipt = 7,
    }

    /// <summary>The priority of a queued message.</summary>
    public enum Priority : byte { Immediate = 0, High = 1, Medium = 2, Low = 3 }

    /// <summary>The kind of an event. A newer library may report kinds that this file does not list.</summary>
    public enum EventKind : uint
    {
        None = 0, Connected = 1, ConnectFailed = 2, Disconnected = 3, Message = 4, Receipt = 5, Progress = 6, MtuChanged = 7,
        Pong = 8, OutOfBand = 9, Advertisement = 10, Incoming = 11, Refused = 12,
    }

    /// <summary>The reason for <see cref="EventKind.ConnectFailed"/>.</summary>
    public enum Failure
    {
        NoAnswer = 1, Unreachable = 2, HandshakeTimeout = 3, AttemptFailed = 4, AlreadyConnected = 5, ServerFull = 6, Banned = 7,
        RecentlyConnected = 8, Version = 9, SecurityRequired = 10, NoSecurity = 11, IdentityRequired = 12, InvalidIdentity = 13,
        PublicKey = 14, Password = 15, Closed = 16, Cancelled = 17, Other = 255,
    }

    /// <summary>The reason for <see cref="EventKind.Disconnected"/>.</summary>
    public enum DisconnectReason
    {
        Local = 1, Remote = 2, Lost = 3, MessageTooLarge = 4, SentTooLarge = 5, PathTooNarrow = 6, ReceiveMemory = 7, Other = 255,
    }

    /// <summary>The reason for <see cref="EventKind.Refused"/>.</summary>
    public enum Refusal
    {
        Password = 1, NoIdentity = 2, Identity = 3, NoToken = 4, TokenExpired = 5, TokenServer = 6, TokenClient = 7, TokenUsed = 8,
        TokenStore = 9, Other = 255,
    }

    /// <summary>The side of this endpoint in a connection: <c>Client</c> if it opened the connection.</summary>
    public enum Side : byte { Client = 0, Server = 1 }

    /// <summary>The state of a connection.</summary>
    public enum ConnectionState : byte { Connecting = 0, Connected = 1, Disconnecting = 2, Disconnected = 3 }

    /// <summary>The outcome of a message with a receipt.</summary>
    public enum Outcome : byte { Acknowledged = 0, Lost = 1 }

    /// <summary>The server that a client trusts. <c>None</c>: not encrypted. <c>Any</c>: protects only against
    /// eavesdropping.</summary>
    public enum Trust : byte { None = 0, Any = 1, Key = 2, Known = 3 }

    /// <summary>When clients must return a cookie, which validates their address.</summary>
    public enum Cookies : byte
    {
        /// <summary>Cookies are required once an eighth of the slots, 2 to 16, are taken by clients without one.</summary>
        Automatic = 0,
        /// <summary>Every client must return a cookie. Some RakNet clients do not support cookies.</summary>
        Required = 1,
        /// <summary>Cookies are required once <see cref="EndpointOptions.CookiesUnvalidated"/> clients have connected without one.</summary>
        UnderLoad = 2,
        /// <summary>No cookies. An attacker with forged addresses can fill the server.</summary>
        Off = 3,
    }

    /// <summary>The congestion control: <c>Delay</c> reacts to queueing delay, <c>NewReno</c> to losses (RFC
    /// 6582).</summary>
    public enum Congestion : byte { Delay = 0, NewReno = 1 }

    /// <summary>The features of a build of the C library.</summary>
    [Flags]
    public enum Features : uint { None = 0, Secure = 1, Sim = 2 }

    /// <summary>Thrown when a call fails. The message is the library's description.</summary>
    public sealed class RakwireException : Exception
    {
        /// <summary>The error code of the library.</summary>
        public ErrorCode Code { get; }

        internal RakwireException(ErrorCode code, string text) : base(text) { Code = code; }
    }

    /// <summary>A connection handle. The default value stands for no connection. Handles are never reused.</summary>
    public readonly struct Connection : IEquatable<Connection>
    {
        /// <summary>The numeric handle, for example as a dictionary key.</summary>
        public readonly ulong Id;

        public Connection(ulong id) { Id = id; }
        public bool IsNone => Id == 0;
        public bool Equals(Connection other) => Id == other.Id;
        public override bool Equals(object other) => other is Connection && Equals((Connection)other);
        public override int GetHashCode() => Id.GetHashCode();
        public override string ToString() => Id.ToString();
        public static bool operator ==(Connection left, Connection right) => left.Id == right.Id;
        public static bool operator !=(Connection left, Connection right) => left.Id != right.Id;
    }

    /// <summary>A client that waits for <see cref="Endpoint.Accept"/>, <see cref="Endpoint.Refuse"/> or <see cref="Endpoint.Ignore"/>.</summary>
    public readonly struct Request
    {
        /// <summary>The numeric handle.</summary>
        public readonly ulong Id;

        internal Request(ulong id) { Id = id; }
    }

    /// <summary>An IP address and UDP port.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct Address : IEquatable<Address>
    {
        internal byte Family;
        internal byte Reserved;
        /// <summary>The UDP port.</summary>
        public ushort Port;
        /// <summary>The interface number of a link-local IPv6 address, otherwise 0.</summary>
        public uint Scope;
        internal fixed byte Ip[16];

        /// <summary>True for the default value, which is not an address.</summary>
        public bool IsNone => Family == 0;

        /// <summary>Parses "host:port", such as "[2001:db8::1]:19132". Resolving a name blocks the thread.</summary>
        public static Address Parse(string text)
        {
            Address address;
            fixed (byte* bytes = Library.Utf8(text))
                Library.Check(Native.rakwire_address_parse(bytes, &address));
            return address;
        }

        /// <summary>Converts a .NET endpoint to an address.</summary>
        public static Address From(IPEndPoint from)
        {
            var address = new Address { Port = (ushort)from.Port };
            byte[] bytes = from.Address.GetAddressBytes();
            address.Family = (byte)(bytes.Length == 4 ? 4 : 6);
            if (bytes.Length == 16)
                address.Scope = (uint)from.Address.ScopeId;
            for (int at = 0; at < bytes.Length; at++)
                address.Ip[at] = bytes[at];
            return address;
        }

        /// <summary>Converts the address to a .NET endpoint; null for the default value.</summary>
        public IPEndPoint ToIPEndPoint()
        {
            if (IsNone)
                return null;
            var bytes = new byte[Family == 4 ? 4 : 16];
            fixed (byte* ip = Ip)
                for (int at = 0; at < bytes.Length; at++)
                    bytes[at] = ip[at];
            return new IPEndPoint(Family == 4 ? new IPAddress(bytes) : new IPAddress(bytes, Scope), Port);
        }

        /// <summary>Formats the address as "host:port"; empty for the default value.</summary>
        public override string ToString()
        {
            if (IsNone)
                return "";
            byte* buffer = stackalloc byte[64];
            fixed (Address* self = &this)
                return Encoding.UTF8.GetString(buffer, Library.Check(Native.rakwire_address_format(self, buffer, (UIntPtr)64)));
        }

        public bool Equals(Address other)
        {
            bool equal = Family == other.Family && Port == other.Port && Scope == other.Scope;
            fixed (byte* ip = Ip)
                for (int at = 0; at < 16 && equal; at++)
                    equal = ip[at] == other.Ip[at];
            return equal;
        }

        public override bool Equals(object other) => other is Address && Equals((Address)other);

        public override int GetHashCode()
        {
            uint hash = Port;
            fixed (byte* ip = Ip)
                for (int at = 0; at < 16; at++)
                    hash = unchecked(hash * 31 + ip[at]);
            return unchecked((int)hash);
        }
    }

    /// <summary>The state of a connection, as returned by <see cref="Endpoint.Info"/>.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct ConnectionInfo
    {
        internal uint Size;
        /// <summary>The maximum datagram size of the path in bytes, including IP and UDP headers.</summary>
        public ushort Mtu;
        /// <summary>The side that opened the connection.</summary>
        public Side Side;
        /// <summary>The state of the connection.</summary>
        public ConnectionState State;
        /// <summary>The address of the peer.</summary>
        public Address Address;
        /// <summary>The GUID of the peer, or ulong.MaxValue while it is unknown.</summary>
        public ulong Guid;
        /// <summary>The maximum message length in bytes that the connection accepts.</summary>
        public ulong MaxMessageLen;
    }

    /// <summary>Cumulative counters of an endpoint.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct EndpointStats
    {
        internal uint Size;
        /// <summary>The current number of connections, including those that are opening or closing.</summary>
        public uint Connections;
        public ulong DatagramsReceived, BytesReceived, DatagramsRefused, DatagramsSent, BytesSent;
        /// <summary>Datagrams that the protocol dropped, for any reason.</summary>
        public ulong DatagramsDropped;
        /// <summary>Datagrams dropped because they are longer than any RakNet datagram.</summary>
        public ulong TooLong;
        /// <summary>Send and receive calls to the operating system that failed.</summary>
        public ulong SendFailures, ReceiveFailures;
        /// <summary>The number of borrowed messages, including those of taken events that Poll has not returned yet.</summary>
        public ulong BorrowedMessages;
        /// <summary>Clients dropped because too many were waiting for <see cref="Endpoint.Accept"/>.</summary>
        public ulong IncomingOverflows;
        /// <summary>Datagrams from trusted proxies dropped because of an invalid header or a full client table.</summary>
        public ulong ProxyHeadersRefused;
    }

    /// <summary>Cumulative counters and measurements of a connection. Times are in microseconds.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct ConnectionStats
    {
        internal uint Size;
        /// <summary>The maximum datagram size of the path in bytes, including IP and UDP headers.</summary>
        public uint Mtu;
        public ulong MessagesSent, MessagesReceived, DatagramsSent, DatagramsReceived, DatagramsLost, DatagramsAcknowledged;
        /// <summary>Message bytes that were accepted for sending, sent for the first time, and retransmitted.</summary>
        public ulong BytesPushed, BytesSent, BytesResent;
        /// <summary>Bytes of all sent and received datagrams, without IP and UDP headers.</summary>
        public ulong ActualBytesSent, ActualBytesReceived;
        /// <summary>Round-trip times: smoothed, of the last ping, mean of the last five pings, and lowest.</summary>
        public ulong RoundTripUs, LastPingUs, AveragePingUs, LowestPingUs;
        /// <summary>The congestion window and the data in flight, in bytes.</summary>
        public uint CongestionWindow, InFlight;
        internal fixed uint waitingMessages[4];
        internal fixed uint waitingBytes[4];
        /// <summary>The fraction of sent message bytes that were retransmissions, 0 to 1: in total, and in the last
        /// full second.</summary>
        public double Loss, LossLastSecond;
        /// <summary>Datagrams that were declared lost but acknowledged later.</summary>
        public ulong DatagramsLate;
        /// <summary>Message bytes that were delivered, and that were ignored as duplicates or as older than a delivered
        /// sequenced message.</summary>
        public ulong BytesProcessed, BytesIgnored;
        /// <summary>The counters of the same name in the last full second.</summary>
        public uint BytesPushedLastSecond, BytesSentLastSecond, BytesResentLastSecond, BytesProcessedLastSecond, BytesIgnoredLastSecond;
        public uint ActualBytesSentLastSecond, ActualBytesReceivedLastSecond;
        /// <summary>Lost messages queued for retransmission, and their bytes.</summary>
        public uint WaitingResendMessages, WaitingResendBytes;
        internal uint hasClockDifference;
        internal long clockDifferenceMs;

        /// <summary>The clock of the peer minus the local clock in milliseconds; null before the first pong.</summary>
        public long? ClockDifferenceMs => hasClockDifference != 0 ? clockDifferenceMs : (long?)null;

        /// <summary>Returns the number of queued messages of a priority.</summary>
        public uint WaitingMessages(Priority priority)
        {
            fixed (uint* waiting = waitingMessages)
                return waiting[(byte)priority & 3];
        }

        /// <summary>Returns the number of queued bytes of a priority.</summary>
        public uint WaitingBytes(Priority priority)
        {
            fixed (uint* waiting = waitingBytes)
                return waiting[(byte)priority & 3];
        }
    }

    /// <summary>The options of an endpoint. Times are in milliseconds. The defaults suit a client on any IPv4
    /// port.</summary>
    public sealed unsafe class EndpointOptions
    {
        NativeOptions raw;

        public EndpointOptions()
        {
            fixed (NativeOptions* options = &raw)
                Library.Check(Native.rakwire_options_init(options, (UIntPtr)sizeof(NativeOptions)));
        }

        /// <summary>The address to bind, such as "0.0.0.0:19132" or "[::]:19132". Null: any IPv4 port.</summary>
        public string BindAddress { get; set; }
        /// <summary>The maximum number of incoming connections. Default: 0, a client.</summary>
        public ushort MaxIncoming { get => raw.MaxIncoming; set => raw.MaxIncoming = value; }
        /// <summary>The maximum number of connections, up to 65,534. 0: 64, or <see cref="MaxIncoming"/> if that is more.</summary>
        public uint MaxConnections { get => raw.MaxConnections; set => raw.MaxConnections = value; }
        /// <summary>The maximum number of incoming connections per address. 0: 3/4 of <see cref="MaxIncoming"/>, or no
        /// limit if <see cref="MaxIncoming"/> is below 16.</summary>
        public ushort MaxPerAddress { get => raw.MaxPerAddress; set => raw.MaxPerAddress = value; }
        /// <summary>The maximum number of incoming connections per network (/24, or /48 in IPv6). 0: 7/8 of <see
        /// cref="MaxIncoming"/>, or no limit if <see cref="MaxIncoming"/> is below 16.</summary>
        public ushort MaxPerNetwork { get => raw.MaxPerNetwork; set => raw.MaxPerNetwork = value; }
        /// <summary>The maximum number of handshakes in progress per network (/24, or /64 in IPv6) without a cookie.
        /// Default: 8.</summary>
        public ushort MaxHalfOpenPerNetwork { get => raw.MaxHalfOpenPerNetwork; set => raw.MaxHalfOpenPerNetwork = value; }
        /// <summary>When clients must return a cookie. Default: <see cref="Rakwire.Cookies.Automatic"/>.</summary>
        public Cookies Cookies { get => raw.Cookies; set => raw.Cookies = value; }
        /// <summary>The number of clients admitted without a cookie, for <see cref="Rakwire.Cookies.UnderLoad"/>.</summary>
        public ushort CookiesUnvalidated { get => raw.CookiesUnvalidated; set => raw.CookiesUnvalidated = value; }
        /// <summary>The maximum number of pongs per second. 0: pings are not answered. Default: 1,000.</summary>
        public ushort PongsPerSecond { get => raw.PongsPerSecond; set => raw.PongsPerSecond = value; }
        /// <summary>The maximum number of pongs per second and network (/24, or /64 in IPv6). Default: 20.</summary>
        public ushort PongsPerNetwork { get => raw.PongsPerNetwork; set => raw.PongsPerNetwork = value; }
        /// <summary>The minimum time between connections from the same address. Default: 0, none.</summary>
        public uint ConnectionIntervalMs { get => raw.ConnectionIntervalMs; set => raw.ConnectionIntervalMs = value; }
        /// <summary>Trusted proxies, such as "10.0.0.7/32,fd00::/64", which name the client in PROXY headers (version 2).</summary>
        public string TrustedProxies { get; set; }
        /// <summary>The number of 512-byte blocks for queued and unacknowledged messages. 0: computed from <see
        /// cref="MaxConnections"/>.</summary>
        public uint Blocks { get => raw.Blocks; set => raw.Blocks = value; }
        /// <summary>The maximum number of blocks per connection and direction. Default: 0, limited only by <see
        /// cref="Blocks"/>.</summary>
        public uint ConnectionBlocks { get => raw.ConnectionBlocks; set => raw.ConnectionBlocks = value; }
        /// <summary>The congestion control of connections. Default: <see cref="Rakwire.Congestion.Delay"/>.</summary>
        public Congestion Congestion { get => raw.Congestion; set => raw.Congestion = value; }
        /// <summary>The maximum sending rate per connection in bits per second. Default: 0, unlimited.</summary>
        public ulong OutgoingLimit { get => raw.OutgoingLimit; set => raw.OutgoingLimit = value; }
        /// <summary>The maximum length of a sent message in bytes. Default: 4,000,000.</summary>
        public uint MaxMessageLen { get => raw.MaxMessageLen; set => raw.MaxMessageLen = value; }
        /// <summary>The maximum MTU in bytes, 576 to 1,492. Default: 1,492.</summary>
        public ushort Mtu { get => raw.Mtu; set => raw.Mtu = value; }
        /// <summary>The RakNet protocol version for outgoing connections. Default: 6.</summary>
        public byte ProtocolVersion { get => raw.ProtocolVersion; set => raw.ProtocolVersion = value; }
        /// <summary>The GUID of the endpoint. 0: a random GUID.</summary>
        public ulong Guid { get => raw.Guid; set => raw.Guid = value; }
        /// <summary>True if out-of-band messages and advertisements are reported as events. Default: false.</summary>
        public bool OutOfBand { get => raw.OutOfBand != 0; set => raw.OutOfBand = Library.Flag(value); }
        /// <summary>True if each new client waits for a decision of the application. Default: false.</summary>
        public bool DeferIncoming { get => raw.DeferIncoming != 0; set => raw.DeferIncoming = Library.Flag(value); }
        /// <summary>True if an attempt fails immediately when ICMP reports the address as unreachable. Default: true.</summary>
        public bool FailOnUnreachable { get => raw.FailOnUnreachable != 0; set => raw.FailOnUnreachable = Library.Flag(value); }
        /// <summary>The time without a datagram after which a connection with unacknowledged data is lost. Default: 10,000.</summary>
        public uint TimeoutMs { get => raw.TimeoutMs; set => raw.TimeoutMs = value; }
        /// <summary>The interval between pings on a connection. 0: no pings. Default: 5,000.</summary>
        public uint PingIntervalMs { get => raw.PingIntervalMs; set => raw.PingIntervalMs = value; }
        /// <summary>The maximum time for which a closing connection waits for acknowledgements. Default: 5,000.</summary>
        public uint CloseTimeoutMs { get => raw.CloseTimeoutMs; set => raw.CloseTimeoutMs = value; }
        /// <summary>The maximum duration of the handshake after the server's first reply. Default: 10,000.</summary>
        public uint HandshakeTimeoutMs { get => raw.HandshakeTimeoutMs; set => raw.HandshakeTimeoutMs = value; }
        /// <summary>The time after which a queued unreliable message is dropped. Default: 1,000.</summary>
        public uint UnreliableTimeoutMs { get => raw.UnreliableTimeoutMs; set => raw.UnreliableTimeoutMs = value; }
        /// <summary>The interval between transmissions of the first request of an attempt. Default: 500.</summary>
        public uint ConnectIntervalMs { get => raw.ConnectIntervalMs; set => raw.ConnectIntervalMs = value; }
        /// <summary>The number of retransmissions of the first request, 1 to 255; clamped to 3 to 254. Default: 12.</summary>
        public uint ConnectAttempts { get => raw.ConnectAttempts; set => raw.ConnectAttempts = value; }
        /// <summary>The number of parts of a split message between progress events. Default: 0, no events.</summary>
        public uint ProgressInterval { get => raw.ProgressInterval; set => raw.ProgressInterval = value; }
        /// <summary>The password that clients must send, at most 255 bytes. They send it unencrypted. Null: none.</summary>
        public byte[] Password { get; set; }
        /// <summary>Simulated network conditions, such as "loss=5%,latency=50ms,jitter=10ms,seed=7". Null: none.</summary>
        public string Simulate { get; set; }
        /// <summary>True if the endpoint can open secure connections. A key implies it.</summary>
        public bool Secure { get => raw.Secure != 0; set => raw.Secure = Library.Flag(value); }
        /// <summary>The private key of a server, 32 bytes. Null: a server without secure connections.</summary>
        public byte[] ServerKey { get; set; }
        /// <summary>The private key that identifies this client to servers, 32 bytes.</summary>
        public byte[] IdentityKey { get; set; }
        /// <summary>A file with the private key of a server, instead of <see cref="ServerKey"/>.</summary>
        public string ServerKeyFile { get; set; }
        /// <summary>A file with the private key of this client, instead of <see cref="IdentityKey"/>.</summary>
        public string IdentityKeyFile { get; set; }
        /// <summary>The connect token keys that a server accepts, 32 bytes each. Null: clients need no token.</summary>
        public byte[][] TokenKeys { get; set; }
        /// <summary>A file with a connect token key, in addition to <see cref="TokenKeys"/>.</summary>
        public string TokenKeyFile { get; set; }
        /// <summary>A file to append session keys to, for decrypting captures. Only for development.</summary>
        public string KeyLogFile { get; set; }
        /// <summary>True if a server with a key refuses unencrypted clients. Default: false.</summary>
        public bool RequiresSecurity { get => raw.RequiresSecurity != 0; set => raw.RequiresSecurity = Library.Flag(value); }
        /// <summary>True if a server with a key refuses clients without an identity. Default: false.</summary>
        public bool RequiresIdentity { get => raw.RequiresIdentity != 0; set => raw.RequiresIdentity = Library.Flag(value); }

        /// <summary>The protocol versions that a server accepts, at most eight, none of them 0. Default: 6, 10, 11.</summary>
        public byte[] AcceptedVersions
        {
            get
            {
                var versions = new List<byte>();
                fixed (byte* accepted = raw.AcceptedVersions)
                    for (int at = 0; at < 8 && accepted[at] != 0; at++)
                        versions.Add(accepted[at]);
                return versions.ToArray();
            }
            set
            {
                if (value.Length > 8)
                    throw new ArgumentException("a server accepts at most eight versions", nameof(value));
                fixed (byte* accepted = raw.AcceptedVersions)
                    for (int at = 0; at < 8; at++)
                        accepted[at] = at < value.Length ? value[at] : (byte)0;
            }
        }

        internal ulong Open()
        {
            NativeOptions options = raw;
            ulong endpoint;
            options.PasswordLength = Library.Length(Password);
            options.TokenKeyCount = (uint)(TokenKeys == null ? 0 : TokenKeys.Length);
            fixed (byte* bind = Library.Utf8(BindAddress), simulate = Library.Utf8(Simulate), password = Password)
            fixed (byte* serverFile = Library.Utf8(ServerKeyFile), identityFile = Library.Utf8(IdentityKeyFile))
            fixed (byte* server = Library.Key(ServerKey), identity = Library.Key(IdentityKey), tokens = Library.Keys(TokenKeys))
            fixed (byte* tokenFile = Library.Utf8(TokenKeyFile), proxies = Library.Utf8(TrustedProxies), log = Library.Utf8(KeyLogFile))
            {
                options.TokenKeyFile = tokenFile;
                options.TrustedProxies = proxies;
                options.KeyLogFile = log;
                options.BindAddress = bind;
                options.Simulate = simulate;
                options.Password = password;
                options.ServerKeyFile = serverFile;
                options.IdentityKeyFile = identityFile;
                options.ServerKey = server;
                options.IdentityKey = identity;
                options.TokenKeys = tokens;
                Library.Check(Native.rakwire_endpoint_open(&options, &endpoint));
            }
            return endpoint;
        }
    }

    /// <summary>The options of a connection attempt. 0 and null select the endpoint's values. Times are in
    /// milliseconds.</summary>
    public sealed unsafe class ConnectOptions
    {
        NativeConnectOptions raw;

        public ConnectOptions()
        {
            fixed (NativeConnectOptions* options = &raw)
                Library.Check(Native.rakwire_connect_options_init(options, (UIntPtr)sizeof(NativeConnectOptions)));
        }

        /// <summary>The maximum duration of the attempt. 0: limited only by <see cref="Attempts"/>.</summary>
        public uint ConnectTimeoutMs { get => raw.ConnectTimeoutMs; set => raw.ConnectTimeoutMs = value; }
        /// <summary>The time without a datagram after which this connection is lost if it has unacknowledged data.</summary>
        public uint TimeoutMs { get => raw.TimeoutMs; set => raw.TimeoutMs = value; }
        /// <summary>The interval between transmissions of the first request.</summary>
        public uint IntervalMs { get => raw.IntervalMs; set => raw.IntervalMs = value; }
        /// <summary>The number of retransmissions of the first request, clamped to 3 to 254.</summary>
        public byte Attempts { get => raw.Attempts; set => raw.Attempts = value; }
        /// <summary>The RakNet protocol version.</summary>
        public byte ProtocolVersion { get => raw.ProtocolVersion; set => raw.ProtocolVersion = value; }
        /// <summary>The password, at most 255 bytes.</summary>
        public byte[] Password { get; set; }
        /// <summary>The server to trust. Default: <see cref="Rakwire.Trust.None"/>, an unencrypted
        /// connection.</summary>
        public Trust Trust { get => raw.Trust; set => raw.Trust = value; }
        /// <summary>The public key of the server, 32 bytes, for <see cref="Rakwire.Trust.Key"/> and <see cref="Rakwire.Trust.Known"/>.</summary>
        public byte[] ServerKey { get; set; }
        /// <summary>The hash of the server's next key, 24 bytes, for <see cref="Rakwire.Trust.Known"/>.</summary>
        public byte[] NextKeyHash { get; set; }
        /// <summary>The private key that identifies this client on this connection, 32 bytes.</summary>
        public byte[] IdentityKey { get; set; }
        /// <summary>Data sent to the server with the identity, at most 95 bytes.</summary>
        public byte[] IdentityData { get; set; }
        /// <summary>A connect token, instead of a password and <see cref="Trust"/>.</summary>
        public string Token { get; set; }
        /// <summary>The index of the server in the token to connect to, from 0.</summary>
        public byte TokenServer { get => raw.TokenServer; set => raw.TokenServer = value; }

        internal ulong Connect(ulong endpoint, byte* address)
        {
            NativeConnectOptions options = raw;
            ulong connection;
            options.PasswordLength = Library.Length(Password);
            options.IdentityDataLength = Library.Length(IdentityData);
            Library.Copy(ServerKey, options.ServerKey, 32);
            Library.Copy(NextKeyHash, options.NextKeyHash, 24);
            fixed (byte* password = Password, identity = Library.Key(IdentityKey), data = IdentityData, token = Library.Utf8(Token))
            {
                options.Password = password;
                options.IdentityKey = identity;
                options.IdentityData = data;
                options.Token = token;
                Library.Check(Native.rakwire_connect(endpoint, address, &options, &connection));
            }
            return connection;
        }
    }

    /// <summary>An event, valid until the next <see cref="Endpoint.Poll"/>. Properties that do not apply to its kind
    /// are 0.</summary>
    public readonly unsafe ref struct EndpointEvent
    {
        readonly Endpoint endpoint;
        readonly ulong number;

        internal EndpointEvent(Endpoint endpoint, ulong number)
        {
            this.endpoint = endpoint;
            this.number = number;
        }

        /// <summary>The fields of the event. They are stored in the endpoint, which avoids copies.</summary>
        internal ref NativeEvent Raw
        {
            get
            {
                if (endpoint.polls != number)
                    throw new ObjectDisposedException(nameof(EndpointEvent), "an event is valid until the next Poll; call Keep for its bytes, and copy the rest");
                return ref endpoint.Current;
            }
        }

        public EventKind Kind => Raw.Kind;
        /// <summary>The connection, if the event has one.</summary>
        public Connection Connection => new Connection(Raw.Connection);
        /// <summary>The client of <see cref="EventKind.Incoming"/>.</summary>
        public Request Request => new Request(Raw.Request);
        /// <summary>The address of the peer. Not set for messages, receipts, progress and MTU changes; use <see
        /// cref="Connection"/>.</summary>
        public Address Address => Raw.Address;
        /// <summary>The GUID of the peer, if the event has one.</summary>
        public ulong Guid => Raw.Guid;
        /// <summary>The reliability of a received message, without receipts.</summary>
        public Reliability Reliability => Raw.Reliability;
        /// <summary>The ordering channel of a message, 0 to 31.</summary>
        public byte Channel => Raw.Channel;
        public Failure Failure => (Failure)Raw.Reason;
        public DisconnectReason DisconnectReason => (DisconnectReason)Raw.Reason;
        public Refusal Refusal => (Refusal)Raw.Reason;
        /// <summary>A description of the reason, for logs and players.</summary>
        public string ReasonText => Library.Text(Native.rakwire_reason_text((uint)Raw.Kind, Raw.Reason));
        /// <summary>The receipt number that <see cref="Endpoint.Send"/> returned.</summary>
        public uint Receipt => Raw.Receipt;
        public Outcome Outcome => Raw.Outcome;
        public Side Side => Raw.Side;
        /// <summary>The round-trip time of a ping in microseconds.</summary>
        public ulong LatencyUs => Raw.LatencyUs;
        /// <summary>The number of parts received or acknowledged so far. <see cref="ProgressParts"/> is the
        /// total.</summary>
        public uint ProgressDone => Raw.ProgressDone;
        public uint ProgressParts => Raw.ProgressParts;
        /// <summary>An id of the split message, unique among the incomplete messages of its direction.</summary>
        public ushort ProgressMessage => Raw.ProgressMessage;
        /// <summary>True if the progress is of a sent message, false for a received one.</summary>
        public bool IsOutgoing => Raw.Outgoing != 0;
        /// <summary>The new MTU in bytes, including IP and UDP headers.</summary>
        public ushort Mtu => Raw.Mtu;
        /// <summary>The protocol version of the server, for <see cref="Rakwire.Failure.Version"/>.</summary>
        public byte ServerVersion => Raw.ServerVersion;
        /// <summary>True if the refused client has proved that it receives datagrams at its address.</summary>
        public bool IsValidated => Raw.Validated != 0;

        /// <summary>The bytes of a message, pong or advertisement. Throws after the next Poll, Keep or Dispose.</summary>
        public ReadOnlySpan<byte> Data
        {
            get
            {
                ref NativeEvent raw = ref Raw;
                if (endpoint.isTaken)
                    throw new ObjectDisposedException(nameof(EndpointEvent), "the bytes of this event were kept, or the endpoint is closed");
                if (raw.Message == 0)
                    return default(ReadOnlySpan<byte>);
                return new ReadOnlySpan<byte>(raw.Data, (int)raw.Length);
            }
        }

        /// <summary>Copies the bytes into an array, which grows if necessary, for APIs that need an array segment.</summary>
        public ArraySegment<byte> CopyTo(ref byte[] array)
        {
            ReadOnlySpan<byte> data = Data;
            if (array == null || array.Length < data.Length)
                array = new byte[Math.Max(data.Length, array == null ? 2048 : 2 * array.Length)];
            data.CopyTo(array);
            return new ArraySegment<byte>(array, 0, data.Length);
        }

        /// <summary>Keeps the bytes valid after the next Poll, until the result is disposed.</summary>
        public KeptMessage Keep()
        {
            ReadOnlySpan<byte> data = Data;
            if (Raw.Message == 0)
                throw new InvalidOperationException("this event has no bytes to keep");
            return endpoint.Keep(data.Length);
        }
    }

    /// <summary>Message bytes that stay valid after the next Poll, until Dispose. A second Dispose has no
    /// effect.</summary>
    public readonly unsafe struct KeptMessage : IDisposable
    {
        internal sealed class Slot
        {
            internal Endpoint Endpoint;
            internal ulong Message;
            internal IntPtr Data;
            internal int Length;
        }

        readonly Slot slot;
        readonly ulong message;

        internal KeptMessage(Slot slot)
        {
            this.slot = slot;
            message = slot.Message;
        }

        /// <summary>The bytes. Throws after Dispose, or after the endpoint was closed.</summary>
        public ReadOnlySpan<byte> Data
        {
            get
            {
                if (slot == null || slot.Message != message)
                    throw new ObjectDisposedException(nameof(KeptMessage));
                return new ReadOnlySpan<byte>((void*)slot.Data, slot.Length);
            }
        }

        public void Dispose()
        {
            if (slot != null && slot.Message == message)
                slot.Endpoint.Release(slot);
        }
    }

    /// <summary>The endpoints of a thread that were garbage-collected without Dispose. Only this thread can close
    /// them.</summary>
    sealed class OwnerThread
    {
        [ThreadStatic]
        static OwnerThread current;

        readonly List<ulong> abandoned = new List<ulong>();
        volatile bool hasAbandoned;

        internal static OwnerThread Current => current ?? (current = new OwnerThread());

        internal void Abandon(ulong endpoint)
        {
            lock (abandoned)
            {
                abandoned.Add(endpoint);
                hasAbandoned = true;
            }
        }

        internal void CloseAbandoned()
        {
            if (!hasAbandoned)
                return;
            lock (abandoned)
            {
                foreach (ulong endpoint in abandoned)
                    Native.rakwire_endpoint_close(endpoint);
                abandoned.Clear();
                hasAbandoned = false;
            }
        }
    }

    /// <summary>An endpoint: a socket and its connections. Calls from threads other than the one that opened it
    /// throw.</summary>
    /// <remarks> Dispose closes the endpoint without notifying its peers; <see cref="Close"/> disconnects first and
    /// waits. A garbage-collected endpoint is closed when its thread next opens or updates an endpoint. Calls after
    /// Dispose throw <see cref="ErrorCode.Handle"/>. </remarks>
    public sealed unsafe class Endpoint : IDisposable
    {
        readonly OwnerThread owner = OwnerThread.Current;
        readonly List<KeptMessage.Slot> kept = new List<KeptMessage.Slot>();
        readonly Stack<KeptMessage.Slot> free = new Stack<KeptMessage.Slot>();
        byte[] joined = new byte[2048];
        ulong handle;
        const int Batch = 64;
        readonly int thread = Environment.CurrentManagedThreadId;
        /// <summary>The events of the last call, which takes several because it is slow, and the last polled one.</summary>
        readonly NativeEvent[] events = new NativeEvent[Batch];
        int taken, at;
        /// <summary>The number of polled events, and true if the bytes of the last one were kept or freed.</summary>
        internal ulong polls;
        internal bool isTaken;

        /// <summary>The value for <see cref="Wait"/> without a time limit.</summary>
        public const uint Forever = 4294967295;

        /// <summary>Opens an endpoint on the current thread. Null options: a client on any IPv4 port.</summary>
        public Endpoint(EndpointOptions options = null)
        {
            owner.CloseAbandoned();
            handle = (options ?? new EndpointOptions()).Open();
            events[0].Size = (uint)sizeof(NativeEvent);
        }

        internal ref NativeEvent Current => ref events[at];

        ~Endpoint()
        {
            if (handle != 0)
                owner.Abandon(handle);
        }

        /// <summary>Closes the endpoint without notifying its peers. Borrowed bytes become invalid.</summary>
        public void Dispose()
        {
            if (handle == 0)
                return;
            Library.Check(Native.rakwire_endpoint_close(handle));
            handle = 0;
            TakeBytes();
            taken = 0;
            foreach (KeptMessage.Slot slot in kept)
                slot.Message = 0;
            GC.SuppressFinalize(this);
        }

        /// <summary>Disconnects all connections, waits until they are closed or the time has passed, and disposes.
        /// Drops events.</summary>
        public void Close(int longestMs)
        {
            var connections = new Connection[ConnectionCount];
            if (connections.Length > 0)
                Connections(connections);
            foreach (Connection connection in connections)
                Disconnect(connection);
            for (var clock = Stopwatch.StartNew(); ConnectionCount > 0 && clock.ElapsedMilliseconds < longestMs; Thread.Sleep(1))
            {
                Update();
                while (Poll(out var unused)) { }
            }
            Dispose();
        }

        /// <summary>Handles received datagrams and expired timers, and sends datagrams. Call it each frame before <see cref="Poll"/>.</summary>
        public void Update()
        {
            owner.CloseAbandoned();
            Library.Check(Native.rakwire_update(handle));
        }

        /// <summary>Sends queued datagrams as far as congestion control allows. Call it at the end of each frame.</summary>
        public void Flush() => Library.Check(Native.rakwire_flush(handle));

        /// <summary>Waits until a datagram arrives or a timer expires, and returns true. Before the call, poll all
        /// events.</summary>
        /// <remarks>Returns false after <c>timeoutMs</c>, or if a signal interrupts the wait.</remarks>
        public bool Wait(uint timeoutMs) => Library.Check(Native.rakwire_wait(handle, timeoutMs)) > 0;

        /// <summary>The time in microseconds until <see cref="Update"/> is due without a datagram. Null if no timer is
        /// set.</summary>
        public ulong? TimeoutUs
        {
            get
            {
                ulong microseconds;
                return Library.Check(Native.rakwire_timeout(handle, &microseconds)) > 0 ? microseconds : (ulong?)null;
            }
        }

        /// <summary>The socket, only for waiting: a file descriptor, or a SOCKET on Windows. Do not read, write or close it.</summary>
        public IntPtr Socket
        {
            get
            {
                ulong socket;
                Library.Check(Native.rakwire_socket(handle, &socket));
                return (IntPtr)unchecked((long)socket);
            }
        }

        /// <summary>Takes the next event, and ends the use of the bytes of the previous one. Returns false if there is none.</summary>
        public bool Poll(out EndpointEvent next)
        {
            bool isWaiting = at + 1 < taken && thread == Environment.CurrentManagedThreadId;
            bool found = isWaiting || TakeEvents();
            at = isWaiting ? at + 1 : 0;
            isTaken = false;
            next = new EndpointEvent(this, ++polls);
            return found;
        }

        /// <summary>Releases the bytes of all events, and takes the next ones. Returns false if there are none.</summary>
        bool TakeEvents()
        {
            int found;
            fixed (NativeEvent* first = events)
                found = Library.Check(Native.rakwire_poll_many(handle, first, (UIntPtr)taken, (UIntPtr)Batch));
            taken = found;
            return found > 0;
        }

        /// <summary>Detaches the bytes from the last event, so the next Poll does not release them.</summary>
        void TakeBytes()
        {
            isTaken |= Current.Message != 0;
            Current.Message = 0;
        }

        internal KeptMessage Keep(int length)
        {
            if (free.Count == 0)
            {
                free.Push(new KeptMessage.Slot { Endpoint = this });
                kept.Add(free.Peek());
            }
            KeptMessage.Slot slot = free.Pop();
            slot.Message = Current.Message;
            slot.Data = (IntPtr)Current.Data;
            slot.Length = length;
            TakeBytes();
            return new KeptMessage(slot);
        }

        internal void Release(KeptMessage.Slot slot)
        {
            Library.Check(Native.rakwire_message_release(handle, slot.Message));
            slot.Message = 0;
            free.Push(slot);
        }

        /// <summary>The local address of the socket, with the actual port.</summary>
        public Address LocalAddress
        {
            get
            {
                Address address;
                Library.Check(Native.rakwire_local_address(handle, &address));
                return address;
            }
        }

        /// <summary>The GUID of the endpoint.</summary>
        public ulong Guid
        {
            get
            {
                ulong guid;
                Library.Check(Native.rakwire_guid(handle, &guid));
                return guid;
            }
        }

        /// <summary>Starts connecting to "host:port". An event reports success or failure.</summary>
        /// <remarks>Resolving a name blocks the thread. A null address with a token: the server that the token
        /// selects.</remarks>
        public Connection Connect(string address, ConnectOptions options = null)
        {
            ulong connection;
            fixed (byte* text = Library.Utf8(address))
                if (options != null)
                    connection = options.Connect(handle, text);
                else
                    Library.Check(Native.rakwire_connect(handle, text, null, &connection));
            return new Connection(connection);
        }

        /// <summary>Accepts a client. <see cref="EventKind.Connected"/> follows when its handshake completes.</summary>
        public void Accept(Request request) => Library.Check(Native.rakwire_accept(handle, request.Id));

        /// <summary>Refuses a client with the reply "server full". The client may retry.</summary>
        public void Refuse(Request request) => Library.Check(Native.rakwire_refuse(handle, request.Id));

        /// <summary>Ignores a client without a reply. Its next attempt is a new request.</summary>
        public void Ignore(Request request) => Library.Check(Native.rakwire_ignore(handle, request.Id));

        /// <summary>Queues a copy of a message. Returns its receipt number, or 0 without a receipt.</summary>
        /// <remarks>The first byte must be at least 0x1B; use 0x86 and above. <see cref="Flush"/> and <see
        /// cref="Update"/> send.</remarks>
        public uint Send(Connection to, ReadOnlySpan<byte> message, Reliability reliability = Reliability.ReliableOrdered,
            byte channel = 0, Priority priority = Priority.Medium)
        {
            uint receipt;
            Library.Check((int)TrySend(to, message, out receipt, reliability, channel, priority));
            return receipt;
        }

        /// <summary>Like <see cref="Send"/>, but returns errors: <see cref="ErrorCode.NoRoom"/> if the send memory is
        /// full.</summary>
        public ErrorCode TrySend(Connection to, ReadOnlySpan<byte> message, Reliability reliability = Reliability.ReliableOrdered,
            byte channel = 0, Priority priority = Priority.Medium)
        {
            uint receipt;
            return TrySend(to, message, out receipt, reliability, channel, priority);
        }

        /// <summary>Like the other TrySend, with the receipt number.</summary>
        public ErrorCode TrySend(Connection to, ReadOnlySpan<byte> message, out uint receipt, Reliability reliability,
            byte channel = 0, Priority priority = Priority.Medium)
        {
            uint number = 0;
            int result;
            fixed (byte* data = &MemoryMarshal.GetReference(message))
                result = Native.rakwire_send(handle, to.Id, data, (UIntPtr)message.Length, (byte)reliability, channel, (byte)priority, &number);
            receipt = number;
            return (ErrorCode)result;
        }

        /// <summary>Like the other TrySend, for a message with a separate first byte and body.</summary>
        public ErrorCode TrySend(Connection to, byte id, ReadOnlySpan<byte> body, Reliability reliability, byte channel = 0,
            Priority priority = Priority.Medium)
        {
            if (joined.Length <= body.Length)
                joined = new byte[Math.Max(body.Length + 1, 2 * joined.Length)];
            joined[0] = id;
            body.CopyTo(new Span<byte>(joined, 1, body.Length));
            return TrySend(to, new ReadOnlySpan<byte>(joined, 0, body.Length + 1), reliability, channel, priority);
        }

        /// <summary>Queues a message for all open connections except <c>except</c>. Returns the number that accepted
        /// it.</summary>
        public int Broadcast(ReadOnlySpan<byte> message, Reliability reliability = Reliability.ReliableOrdered, byte channel = 0,
            Priority priority = Priority.Medium, Connection except = default(Connection))
        {
            uint refused;
            return Broadcast(message, out refused, reliability, channel, priority, except);
        }

        /// <summary>Like the other Broadcast, with the number of connections that could not accept the message.</summary>
        public int Broadcast(ReadOnlySpan<byte> message, out uint refused, Reliability reliability, byte channel = 0,
            Priority priority = Priority.Medium, Connection except = default(Connection))
        {
            uint without = 0;
            int result;
            fixed (byte* data = &MemoryMarshal.GetReference(message))
                result = Native.rakwire_broadcast(handle, except.Id, data, (UIntPtr)message.Length, (byte)reliability, channel, (byte)priority, &without);
            refused = without;
            return Library.Check(result);
        }

        /// <summary>Starts closing a connection or attempt. Earlier reliable messages are delivered
        /// first.</summary>
        public void Disconnect(Connection connection) => Library.Check(Native.rakwire_disconnect(handle, connection.Id));

        /// <summary>Like <see cref="Disconnect(Connection)"/>, but returns false if there is no such connection.</summary>
        public bool TryDisconnect(Connection connection) => Exists(Native.rakwire_disconnect(handle, connection.Id));

        /// <summary>Returns false if a result means that the connection is closed. Throws on other errors.</summary>
        static bool Exists(int result) => result != (int)ErrorCode.NoConnection && Library.Check(result) >= 0;

        /// <summary>Sends a last message and starts closing the connection, even if sending the message fails.</summary>
        public void Disconnect(Connection connection, ReadOnlySpan<byte> lastMessage, Reliability reliability = Reliability.ReliableOrdered,
            byte channel = 0, Priority priority = Priority.Medium)
        {
            fixed (byte* data = &MemoryMarshal.GetReference(lastMessage))
                Library.Check(Native.rakwire_disconnect_with(handle, connection.Id, data, (UIntPtr)lastMessage.Length,
                    (byte)reliability, channel, (byte)priority));
        }

        /// <summary>Sets the time without a datagram after which a connection with unacknowledged data is lost.</summary>
        public void SetTimeout(Connection connection, uint timeoutMs) =>
            Library.Check(Native.rakwire_set_timeout(handle, connection.Id, timeoutMs));

        /// <summary>The number of connections, including those that are opening or closing.</summary>
        public int ConnectionCount => Library.Check(Native.rakwire_connections(handle, null, UIntPtr.Zero));

        /// <summary>Stores all connections and returns their number. Throws <see cref="ErrorCode.Buffer"/> if they do not fit.</summary>
        public int Connections(Span<Connection> into)
        {
            if (into.IsEmpty && ConnectionCount > 0)
                throw Library.Error((int)ErrorCode.Buffer, Library.Text(Native.rakwire_result_text((int)ErrorCode.Buffer)));
            fixed (Connection* first = &MemoryMarshal.GetReference(into))
                return Library.Check(Native.rakwire_connections(handle, (ulong*)first, (UIntPtr)into.Length));
        }

        /// <summary>Returns the address, GUID, state, MTU and maximum message length of a connection.</summary>
        public ConnectionInfo Info(Connection connection)
        {
            ConnectionInfo info;
            return TryInfo(connection, out info) ? info : throw Library.Error((int)ErrorCode.NoConnection, Library.LastError);
        }

        /// <summary>Like <see cref="Info"/>, but returns false if the connection is closed.</summary>
        public bool TryInfo(Connection connection, out ConnectionInfo info)
        {
            var found = new ConnectionInfo { Size = (uint)sizeof(ConnectionInfo) };
            bool exists = Exists(Native.rakwire_connection_info(handle, connection.Id, &found));
            info = found;
            return exists;
        }

        /// <summary>Returns the counters of the endpoint.</summary>
        public EndpointStats Stats()
        {
            var stats = new EndpointStats { Size = (uint)sizeof(EndpointStats) };
            Library.Check(Native.rakwire_stats(handle, &stats));
            return stats;
        }

        /// <summary>Returns the number of dropped datagrams by reason, such as "TooShort". Reasons that did not occur are absent.</summary>
        public Dictionary<string, ulong> Drops()
        {
            var counts = new ulong[Library.Check(Native.rakwire_drops(handle, null, UIntPtr.Zero))];
            fixed (ulong* first = counts)
                Library.Check(Native.rakwire_drops(handle, first, (UIntPtr)counts.Length));
            var drops = new Dictionary<string, ulong>();
            for (int reason = 0; reason < counts.Length; reason++)
                if (counts[reason] > 0)
                    drops.Add(Library.Text(Native.rakwire_drop_name((uint)reason)), counts[reason]);
            return drops;
        }

        /// <summary>Advice for the operator if the counters show that clients cannot connect, otherwise empty.</summary>
        public string Advice
        {
            get
            {
                byte* buffer = stackalloc byte[512];
                return Encoding.UTF8.GetString(buffer, Library.Check(Native.rakwire_advice(handle, buffer, (UIntPtr)512)));
            }
        }

        /// <summary>Returns the counters and measurements of a connection.</summary>
        public ConnectionStats Stats(Connection connection)
        {
            ConnectionStats stats;
            return TryStats(connection, out stats) ? stats : throw Library.Error((int)ErrorCode.NoConnection, Library.LastError);
        }

        /// <summary>Like <see cref="Stats(Connection)"/>, but returns false if the connection is closed.</summary>
        public bool TryStats(Connection connection, out ConnectionStats stats)
        {
            var found = new ConnectionStats { Size = (uint)sizeof(ConnectionStats) };
            bool exists = Exists(Native.rakwire_connection_stats(handle, connection.Id, &found));
            stats = found;
            return exists;
        }

        /// <summary>Returns the authenticated key, identity and connect token of the peer of a connection.</summary>
        public SecurePeer SecurePeer(Connection connection)
        {
            var peer = new NativeSecurePeer { Size = (uint)sizeof(NativeSecurePeer) };
            Library.Check(Native.rakwire_secure_peer(handle, connection.Id, &peer));
            return new SecurePeer(&peer);
        }

        /// <summary>Pings a server without a connection. <see cref="EventKind.Pong"/> follows if it answers.</summary>
        public void Ping(Address server) => Library.Check(Native.rakwire_ping(handle, &server, 0, 0));

        /// <summary>Pings all servers at a broadcast address. Each server that answers within five seconds causes an event.</summary>
        public void Discover(Address broadcast, bool onlyOpen = false) =>
            Library.Check(Native.rakwire_ping(handle, &broadcast, 1, Library.Flag(onlyOpen)));

        /// <summary>Sets the data that this endpoint sends in its pongs, at most 399 bytes.</summary>
        public void SetAdvertisement(ReadOnlySpan<byte> advertisement)
        {
            fixed (byte* data = &MemoryMarshal.GetReference(advertisement))
                Library.Check(Native.rakwire_set_advertisement(handle, data, (UIntPtr)advertisement.Length));
        }

        /// <summary>Sends one advertisement of at most 398 bytes to a peer without a connection.</summary>
        public void Advertise(Address to, ReadOnlySpan<byte> advertisement)
        {
            fixed (byte* data = &MemoryMarshal.GetReference(advertisement))
                Library.Check(Native.rakwire_advertise(handle, &to, data, (UIntPtr)advertisement.Length));
        }

        /// <summary>Sends one unreliable message of 1 to 399 bytes without a connection. The peer must have <see
        /// cref="EndpointOptions.OutOfBand"/> set.</summary>
        public void SendOutOfBand(Address to, ReadOnlySpan<byte> message)
        {
            fixed (byte* data = &MemoryMarshal.GetReference(message))
                Library.Check(Native.rakwire_send_out_of_band(handle, &to, data, (UIntPtr)message.Length));
        }

        /// <summary>Sets the password that new clients must send, at most 255 bytes. Empty: none.</summary>
        public void SetPassword(ReadOnlySpan<byte> password)
        {
            fixed (byte* data = &MemoryMarshal.GetReference(password))
                Library.Check(Native.rakwire_set_password(handle, data, (UIntPtr)password.Length));
        }

        /// <summary>Bans an address, a wildcard such as "192.0.2.*", or a prefix such as "2001:db8::/32". 0 ms means
        /// permanently.</summary>
        public void Ban(string addresses, uint durationMs = 0)
        {
            fixed (byte* text = Library.Utf8(addresses))
                Library.Check(Native.rakwire_ban(handle, text, durationMs));
        }

        /// <summary>Removes the ban of exactly this pattern. Returns false if there is no such ban.</summary>
        public bool Unban(string addresses)
        {
            fixed (byte* text = Library.Utf8(addresses))
                return Library.Check(Native.rakwire_unban(handle, text)) > 0;
        }

        /// <summary>Returns true if the address is currently banned.</summary>
        public bool IsBanned(Address address) => Library.Check(Native.rakwire_is_banned(handle, &address)) > 0;
    }

    /// <summary>The authenticated peer of a secure connection.</summary>
    public sealed unsafe class SecurePeer
    {
        /// <summary>False for an unencrypted connection, for which all other values are empty.</summary>
        public readonly bool IsSecure;
        /// <summary>The public key of the peer: the server's key, or the client's identity. Null for an anonymous
        /// client.</summary>
        public readonly byte[] Key;
        /// <summary>The hash of the server's next key, or null.</summary>
        public readonly byte[] NextKeyHash;
        /// <summary>The data that the client sent with its identity.</summary>
        public readonly byte[] IdentityData;
        /// <summary>True if the client presented a connect token. The following fields describe the token.</summary>
        public readonly bool HasToken;
        public readonly ulong TokenUserId;
        /// <summary>The expiry of the token, in seconds since the Unix epoch.</summary>
        public readonly ulong TokenExpires;
        public readonly byte[] TokenData;

        internal SecurePeer(NativeSecurePeer* peer)
        {
            IsSecure = peer->IsSecure != 0;
            Key = peer->HasKey == 0 ? null : new ReadOnlySpan<byte>(peer->Key, 32).ToArray();
            NextKeyHash = peer->HasNextKey == 0 ? null : new ReadOnlySpan<byte>(peer->NextKeyHash, 24).ToArray();
            IdentityData = new ReadOnlySpan<byte>(peer->IdentityData, peer->IdentityDataLength).ToArray();
            HasToken = peer->HasToken != 0;
            TokenUserId = peer->TokenUserId;
            TokenExpires = peer->TokenExpires;
            TokenData = new ReadOnlySpan<byte>(peer->TokenData, (int)peer->TokenDataLength).ToArray();
        }
    }

    /// <summary>Generates and reads keys of secure connections, 32 bytes each.</summary>
    public static unsafe class Keys
    {
        /// <summary>Generates a private key, and its public key.</summary>
        public static byte[] Generate(out byte[] publicKey)
        {
            var secret = new byte[32];
            publicKey = new byte[32];
            fixed (byte* to = secret, key = publicKey)
                Library.Check(Native.rakwire_key_generate(to, key));
            return secret;
        }

        /// <summary>Returns the public key of a private key.</summary>
        public static byte[] PublicKey(byte[] privateKey)
        {
            var key = new byte[32];
            fixed (byte* from = Library.Key(privateKey), to = key)
                Library.Check(Native.rakwire_public_key(from, to));
            return key;
        }

        /// <summary>Generates a key in a new file that only its owner may read. Returns the public key.</summary>
        public static byte[] CreateFile(string path)
        {
            var key = new byte[32];
            fixed (byte* text = Library.Utf8(path), to = key)
                Library.Check(Native.rakwire_key_file_create(text, to));
            return key;
        }

        /// <summary>Returns the public key of a file written by <see cref="CreateFile"/>.</summary>
        public static byte[] PublicKeyOfFile(string path)
        {
            var key = new byte[32];
            fixed (byte* text = Library.Utf8(path), to = key)
                Library.Check(Native.rakwire_key_file_public(text, to));
            return key;
        }

        /// <summary>Generates a token key in a new file that only its owner may read.</summary>
        /// <remarks>The servers and the backend need the same key.</remarks>
        public static void CreateTokenKeyFile(string path)
        {
            fixed (byte* text = Library.Utf8(path))
                Library.Check(Native.rakwire_token_key_file_create(text));
        }
    }

    /// <summary>The contents of a connect token, which a backend creates for a user.</summary>
    public sealed unsafe class TokenClaims
    {
        const int LongestToken = 4096;

        /// <summary>The user id, which the backend chooses.</summary>
        public ulong UserId { get; set; }
        /// <summary>The expiry, in seconds since the Unix epoch.</summary>
        public ulong Expires { get; set; }
        /// <summary>The public key of the client, 32 bytes.</summary>
        public byte[] ClientKey { get; set; }
        /// <summary>The addresses of 1 to 4 servers, such as "game.example.org:19132".</summary>
        public string[] ServerNames { get; set; }
        /// <summary>The public keys of the servers, 32 bytes each.</summary>
        public byte[][] ServerKeys { get; set; }
        /// <summary>Data for the server, at most 128 bytes, or null.</summary>
        public byte[] UserData { get; set; }

        /// <summary>Creates a connect token with a token key of 32 bytes.</summary>
        public string ToToken(byte[] tokenKey) => Create(tokenKey, null);

        /// <summary>Creates a connect token with a token key file written by <see cref="Keys.CreateTokenKeyFile"/>.</summary>
        public string ToTokenByFile(string tokenKeyFile) => Create(null, tokenKeyFile);

        string Create(byte[] tokenKey, string tokenKeyFile)
        {
            int servers = ServerNames == null ? 0 : ServerNames.Length;
            if (servers < 1 || servers > 4 || ServerKeys == null || ServerKeys.Length != servers)
                throw new ArgumentException("a token needs 1 to 4 ServerNames, and as many ServerKeys");
            var claims = new NativeTokenClaims
            {
                Size = (uint)sizeof(NativeTokenClaims), ServerCount = (uint)servers, UserId = UserId, Expires = Expires,
                UserDataLength = Library.Length(UserData),
            };
            byte** names = stackalloc byte*[4];
            byte* token = stackalloc byte[LongestToken];
            UIntPtr length;
            fixed (byte* text = Library.Utf8(string.Join("\n", ServerNames)), key = Library.Key(tokenKey), file = Library.Utf8(tokenKeyFile))
            fixed (byte* client = Library.Key(ClientKey), server = Library.Keys(ServerKeys), data = UserData)
            {
                names[0] = text;
                for (int name = 1; name < servers; name++)
                    names[name] = names[name - 1] + Encoding.UTF8.GetByteCount(ServerNames[name - 1]) + 1;
                for (int name = 1; name < servers; name++)
                    names[name][-1] = 0;
                claims.ClientKey = client;
                claims.ServerKeys = server;
                claims.ServerNames = names;
                claims.UserData = data;
                claims.TokenKeyFile = file;
                Library.Check(Native.rakwire_token_create(key, &claims, token, (UIntPtr)LongestToken, &length));
            }
            return Library.Text(token);
        }
    }

    /// <summary>Functions of the C library that need no endpoint.</summary>
    public static unsafe class Library
    {
        /// <summary>The version of the library, such as "0.1.0".</summary>
        public static string Version => Text(Native.rakwire_version());
        /// <summary>The features of this build of the library.</summary>
        public static Features Features => (Features)Native.rakwire_features();
        /// <summary>The description of the last failed call on this thread, for methods that return an <see cref="ErrorCode"/>.</summary>
        public static string LastError => Text(Native.rakwire_last_error());
        /// <summary>Returns the general description of an error code.</summary>
        public static string Describe(ErrorCode error) => Text(Native.rakwire_result_text((int)error));

        internal static int Check(int result)
        {
            if (result < 0)
                throw Error(result, LastError);
            return result;
        }

        internal static RakwireException Error(int result, string text) => new RakwireException((ErrorCode)result, text);

        internal static string Text(byte* text)
        {
            int length = 0;
            while (text[length] != 0)
                length++;
            return Encoding.UTF8.GetString(text, length);
        }

        /// <summary>Converts text to NUL-terminated UTF-8. Null stays null.</summary>
        internal static byte[] Utf8(string text)
        {
            if (text == null)
                return null;
            if (text.IndexOf('\0') >= 0)
                throw Error((int)ErrorCode.String, "a string contains a zero character");
            return Encoding.UTF8.GetBytes(text + "\0");
        }

        internal static byte Flag(bool value) => value ? (byte)1 : (byte)0;

        internal static UIntPtr Length(byte[] bytes) => (UIntPtr)(bytes == null ? 0 : bytes.Length);

        /// <summary>Throws unless a key has 32 bytes: the library reads 32 bytes without checking a length.</summary>
        internal static byte[] Key(byte[] key)
        {
            if (key != null && key.Length != 32)
                throw new ArgumentException("a key must have 32 bytes, not " + key.Length);
            return key;
        }

        internal static byte[] Keys(byte[][] keys)
        {
            if (keys == null)
                return null;
            var all = new byte[32 * keys.Length];
            for (int at = 0; at < keys.Length; at++)
            {
                if (keys[at] == null)
                    throw new ArgumentNullException(nameof(keys));
                Key(keys[at]).CopyTo(all, 32 * at);
            }
            return all;
        }

        internal static void Copy(byte[] from, byte* to, int length)
        {
            if (from == null)
                return;
            if (from.Length != length)
                throw new ArgumentException("a value must have " + length + " bytes, not " + from.Length);
            Marshal.Copy(from, 0, (IntPtr)to, length);
        }
    }

#pragma warning disable 649 // The library writes the fields.
    [StructLayout(LayoutKind.Sequential)]
    unsafe struct NativeOptions
    {
        internal uint Size;
        internal byte ProtocolVersion, OutOfBand, DeferIncoming, FailOnUnreachable;
        internal byte* BindAddress;
        internal ushort MaxIncoming, Mtu;
        internal uint MaxConnections, Blocks, MaxMessageLen, TimeoutMs, CloseTimeoutMs, HandshakeTimeoutMs, UnreliableTimeoutMs;
        internal uint ConnectIntervalMs, ConnectAttempts, ProgressInterval;
        internal ushort MaxPerAddress, Reserved;
        internal ulong Guid;
        internal fixed byte AcceptedVersions[8];
        internal byte* Password;
        internal UIntPtr PasswordLength;
        internal byte* Simulate, ServerKey, IdentityKey, ServerKeyFile, IdentityKeyFile, TokenKeys;
        internal uint TokenKeyCount;
        internal byte Secure, RequiresSecurity, RequiresIdentity;
        internal Cookies Cookies;
        internal ushort CookiesUnvalidated, MaxPerNetwork, MaxHalfOpenPerNetwork, PongsPerSecond, PongsPerNetwork;
        internal Congestion Congestion;
        internal byte ReservedByte;
        internal uint ConnectionIntervalMs, ConnectionBlocks, PingIntervalMs;
        internal ulong OutgoingLimit;
        internal byte* TokenKeyFile, TrustedProxies, KeyLogFile;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct NativeEvent
    {
        internal uint Size;
        internal EventKind Kind;
        internal ulong Connection, Message;
        internal byte* Data;
        internal UIntPtr Length;
        internal ulong Request, Guid, LatencyUs;
        internal Address Address;
        internal int Reason;
        internal uint Receipt, ProgressDone, ProgressParts;
        internal ushort ProgressMessage, Mtu;
        internal Reliability Reliability;
        internal byte Channel;
        internal Side Side;
        internal Outcome Outcome;
        internal byte ServerVersion, Outgoing, Validated;
        internal fixed byte Reserved[5];
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct NativeConnectOptions
    {
        internal uint Size, ConnectTimeoutMs, TimeoutMs, IntervalMs;
        internal byte Attempts, ProtocolVersion;
        internal Trust Trust;
        internal byte TokenServer;
        internal uint Reserved;
        internal byte* Password;
        internal UIntPtr PasswordLength;
        internal byte* IdentityKey, IdentityData;
        internal UIntPtr IdentityDataLength;
        internal byte* Token;
        internal fixed byte ServerKey[32];
        internal fixed byte NextKeyHash[24];
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct NativeTokenClaims
    {
        internal uint Size, ServerCount;
        internal ulong UserId, Expires;
        internal byte* ClientKey, ServerKeys;
        internal byte** ServerNames;
        internal byte* UserData;
        internal UIntPtr UserDataLength;
        internal byte* TokenKeyFile;
    }

    [StructLayout(LayoutKind.Sequential)]
    unsafe struct NativeSecurePeer
    {
        internal uint Size;
        internal byte IsSecure, HasKey, HasNextKey, IdentityDataLength;
        internal fixed byte Key[32];
        internal fixed byte NextKeyHash[24];
        internal fixed byte IdentityData[95];
        internal byte HasToken;
        internal ulong TokenUserId, TokenExpires;
        internal fixed byte TokenData[128];
        internal uint TokenDataLength, Reserved;
    }
#pragma warning restore 649

    /// <summary>The functions of <c>rakwire.h</c>.</summary>
    static unsafe class Native
    {
#if UNITY_IOS && !UNITY_EDITOR
        const string Name = "__Internal";
#else
        const string Name = "rakwire_c";
#endif
        const CallingConvention Convention = CallingConvention.Cdecl;

        [DllImport(Name, CallingConvention = Convention)] internal static extern byte* rakwire_last_error();
        [DllImport(Name, CallingConvention = Convention)] internal static extern byte* rakwire_result_text(int result);
        [DllImport(Name, CallingConvention = Convention)] internal static extern byte* rakwire_version();
        [DllImport(Name, CallingConvention = Convention)] internal static extern uint rakwire_features();
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_options_init(NativeOptions* options, UIntPtr size);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_endpoint_open(NativeOptions* options, ulong* endpoint);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_endpoint_close(ulong endpoint);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_update(ulong endpoint);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_flush(ulong endpoint);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_poll(ulong endpoint, NativeEvent* next);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_poll_next(ulong endpoint, NativeEvent* next);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_poll_many(ulong endpoint, NativeEvent* events, UIntPtr used, UIntPtr capacity);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_local_address(ulong endpoint, Address* address);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_guid(ulong endpoint, ulong* guid);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_address_parse(byte* text, Address* address);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_address_format(Address* address, byte* buffer, UIntPtr capacity);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_wait(ulong endpoint, uint timeoutMs);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_timeout(ulong endpoint, ulong* microseconds);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_socket(ulong endpoint, ulong* socket);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_connect_options_init(NativeConnectOptions* options, UIntPtr size);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_connect(ulong endpoint, byte* address, NativeConnectOptions* options, ulong* connection);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_accept(ulong endpoint, ulong request);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_refuse(ulong endpoint, ulong request);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_ignore(ulong endpoint, ulong request);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_disconnect(ulong endpoint, ulong connection);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_disconnect_with(ulong endpoint, ulong connection, byte* data, UIntPtr length, byte reliability, byte channel, byte priority);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_set_timeout(ulong endpoint, ulong connection, uint timeoutMs);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_connections(ulong endpoint, ulong* connections, UIntPtr capacity);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_connection_info(ulong endpoint, ulong connection, ConnectionInfo* info);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_send(ulong endpoint, ulong connection, byte* data, UIntPtr length, byte reliability, byte channel, byte priority, uint* receipt);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_broadcast(ulong endpoint, ulong except, byte* data, UIntPtr length, byte reliability, byte channel, byte priority, uint* refused);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_message_release(ulong endpoint, ulong message);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_ping(ulong endpoint, Address* address, byte isBroadcast, byte onlyOpen);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_set_advertisement(ulong endpoint, byte* data, UIntPtr length);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_send_out_of_band(ulong endpoint, Address* address, byte* data, UIntPtr length);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_advertise(ulong endpoint, Address* address, byte* data, UIntPtr length);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_set_password(ulong endpoint, byte* password, UIntPtr length);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_ban(ulong endpoint, byte* addresses, uint durationMs);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_unban(ulong endpoint, byte* addresses);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_is_banned(ulong endpoint, Address* address);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_stats(ulong endpoint, EndpointStats* stats);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_connection_stats(ulong endpoint, ulong connection, ConnectionStats* stats);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_drops(ulong endpoint, ulong* counts, UIntPtr capacity);
        [DllImport(Name, CallingConvention = Convention)] internal static extern byte* rakwire_drop_name(uint reason);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_advice(ulong endpoint, byte* buffer, UIntPtr capacity);
        [DllImport(Name, CallingConvention = Convention)] internal static extern byte* rakwire_reason_text(uint kind, int reason);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_key_generate(byte* privateKey, byte* publicKey);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_public_key(byte* privateKey, byte* publicKey);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_key_file_create(byte* path, byte* publicKey);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_key_file_public(byte* path, byte* publicKey);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_token_key_file_create(byte* path);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_token_create(byte* tokenKey, NativeTokenClaims* claims, byte* buffer, UIntPtr capacity, UIntPtr* length);
        [DllImport(Name, CallingConvention = Convention)] internal static extern int rakwire_secure_peer(ulong endpoint, ulong connection, NativeSecurePeer* peer);
    }
}
