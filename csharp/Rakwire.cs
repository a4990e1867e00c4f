// rakwire for C#: RakNet over UDP, by the C library of rakwire (capi/ of its repository). One file for .NET Standard 2.1, with
// unsafe code allowed.
//
//     var server = new Endpoint(new EndpointOptions { BindAddress = "0.0.0.0:19132", MaxIncoming = 64 });
//     for (;;) { // each frame
//         server.Update();
//         while (server.Poll(out var e))
//             if (e.Kind == EventKind.Message)
//                 server.Send(e.Connection, e.Data, e.Reliability, e.Channel);
//         server.Flush();
//     }
//
// An endpoint does something only while one of its methods runs, and belongs to the thread that opened it. Errors are exceptions
// of the type RakwireException with the sentence of the library, except where a method returns an ErrorCode. No method allocates
// for a message: its bytes are borrowed until the next Poll, or until they are released after Keep.

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

    /// <summary>The way in which a message is delivered. The values with a receipt have an event that reports the outcome.</summary>
    public enum Reliability : byte
    {
        Unreliable = 0, UnreliableSequenced = 1, Reliable = 2, ReliableOrdered = 3, ReliableSequenced = 4,
        UnreliableWithReceipt = 5, ReliableWithReceipt = 6, ReliableOrderedWithReceipt = 7,
    }

    /// <summary>The order in which waiting messages are sent.</summary>
    public enum Priority : byte { Immediate = 0, High = 1, Medium = 2, Low = 3 }

    /// <summary>The kind of an event. A kind that this file does not list is one of a newer library.</summary>
    public enum EventKind : uint
    {
        None = 0, Connected = 1, ConnectFailed = 2, Disconnected = 3, Message = 4, Receipt = 5, Progress = 6, MtuChanged = 7,
        Pong = 8, OutOfBand = 9, Advertisement = 10, Incoming = 11, Refused = 12,
    }

    /// <summary>The reason of <see cref="EventKind.ConnectFailed"/>.</summary>
    public enum Failure
    {
        NoAnswer = 1, Unreachable = 2, HandshakeTimeout = 3, AttemptFailed = 4, AlreadyConnected = 5, ServerFull = 6, Banned = 7,
        RecentlyConnected = 8, Version = 9, SecurityRequired = 10, NoSecurity = 11, IdentityRequired = 12, InvalidIdentity = 13,
        PublicKey = 14, Password = 15, Closed = 16, Cancelled = 17, Other = 255,
    }

    /// <summary>The reason of <see cref="EventKind.Disconnected"/>.</summary>
    public enum DisconnectReason
    {
        Local = 1, Remote = 2, Lost = 3, MessageTooLarge = 4, SentTooLarge = 5, PathTooNarrow = 6, ReceiveMemory = 7, Other = 255,
    }

    /// <summary>The reason of <see cref="EventKind.Refused"/>.</summary>
    public enum Refusal
    {
        Password = 1, NoIdentity = 2, Identity = 3, NoToken = 4, TokenExpired = 5, TokenServer = 6, TokenClient = 7, TokenUsed = 8,
        TokenStore = 9, Other = 255,
    }

    /// <summary>The side of a connection: <c>Client</c> if this endpoint opened it.</summary>
    public enum Side : byte { Client = 0, Server = 1 }

    /// <summary>The state of a connection.</summary>
    public enum ConnectionState : byte { Connecting = 0, Connected = 1, Disconnecting = 2, Disconnected = 3 }

    /// <summary>The outcome of a message with a receipt.</summary>
    public enum Outcome : byte { Acknowledged = 0, Lost = 1 }

    /// <summary>The server that a client accepts. <c>None</c> is a plain connection, and <c>Any</c> protects only against eavesdroppers.</summary>
    public enum Trust : byte { None = 0, Any = 1, Key = 2, Known = 3 }

    /// <summary>How clients prove their address to a server.</summary>
    public enum Cookies : byte
    {
        /// <summary>A cookie is required once several clients have connected without one: an eighth of the slots, 2 to 16.</summary>
        Automatic = 0,
        /// <summary>Each client must return a cookie, which some RakNet libraries cannot.</summary>
        Required = 1,
        /// <summary>A cookie is required once <see cref="EndpointOptions.CookiesUnvalidated"/> clients have connected without one.</summary>
        UnderLoad = 2,
        /// <summary>No cookies: forged addresses can fill the server.</summary>
        Off = 3,
    }

    /// <summary>The rule for the rate of a connection: by the delay of its path, or by losses (RFC 6582).</summary>
    public enum Congestion : byte { Delay = 0, NewReno = 1 }

    /// <summary>The features that a build of the C library has.</summary>
    [Flags]
    public enum Features : uint { None = 0, Secure = 1, Sim = 2 }

    /// <summary>A call that failed. The message is the sentence of the library.</summary>
    public sealed class RakwireException : Exception
    {
        /// <summary>The code of the library.</summary>
        public ErrorCode Code { get; }

        internal RakwireException(ErrorCode code, string text) : base(text) { Code = code; }
    }

    /// <summary>The number of a connection. The default is none. A number is never used again.</summary>
    public readonly struct Connection : IEquatable<Connection>
    {
        /// <summary>The number, for tables of the application.</summary>
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
        /// <summary>The number.</summary>
        public readonly ulong Id;

        internal Request(ulong id) { Id = id; }
    }

    /// <summary>An IP address and port.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct Address : IEquatable<Address>
    {
        internal byte Family;
        internal byte Reserved;
        /// <summary>The port.</summary>
        public ushort Port;
        /// <summary>The number of the interface of a link-local IPv6 address, otherwise 0.</summary>
        public uint Scope;
        internal fixed byte Ip[16];

        /// <summary>True for the default, which is not an address.</summary>
        public bool IsNone => Family == 0;

        /// <summary>Parses "host:port", such as "[2001:db8::1]:19132". A name blocks the thread until it is resolved.</summary>
        public static Address Parse(string text)
        {
            Address address;
            fixed (byte* bytes = Library.Utf8(text))
                Library.Check(Native.rakwire_address_parse(bytes, &address));
            return address;
        }

        /// <summary>Converts an address of .NET.</summary>
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

        /// <summary>Converts to an address of .NET. The default becomes null.</summary>
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

        /// <summary>Writes "host:port". The default becomes an empty string.</summary>
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

    /// <summary>A connection, as <see cref="Endpoint.Info"/> returns it.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct ConnectionInfo
    {
        internal uint Size;
        /// <summary>The largest datagram of the path in bytes, with the headers of IP and UDP.</summary>
        public ushort Mtu;
        /// <summary>The side that opened the connection.</summary>
        public Side Side;
        /// <summary>The state.</summary>
        public ConnectionState State;
        /// <summary>The address of the peer.</summary>
        public Address Address;
        /// <summary>The GUID of the peer, once it is known.</summary>
        public ulong Guid;
        /// <summary>The longest message in bytes that the connection accepts.</summary>
        public ulong MaxMessageLen;
    }

    /// <summary>The counters of an endpoint, which only grow.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct EndpointStats
    {
        internal uint Size;
        /// <summary>Connections, including those that are being opened or closed.</summary>
        public uint Connections;
        public ulong DatagramsReceived, BytesReceived, DatagramsRefused, DatagramsSent, BytesSent;
        /// <summary>Datagrams that the protocol dropped, for all reasons together.</summary>
        public ulong DatagramsDropped;
        /// <summary>Datagrams that were longer than any of RakNet.</summary>
        public ulong TooLong;
        /// <summary>Calls of the system that failed.</summary>
        public ulong SendFailures, ReceiveFailures;
        /// <summary>Messages that the program has borrowed now.</summary>
        public ulong BorrowedMessages;
        /// <summary>Clients that were dropped because too many waited for a decision.</summary>
        public ulong IncomingOverflows;
        /// <summary>Datagrams of trusted proxies with a header that is wrong, or without room for their client.</summary>
        public ulong ProxyHeadersRefused;
    }

    /// <summary>The counters of a connection, which only grow, and measurements. Times are in microseconds.</summary>
    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct ConnectionStats
    {
        internal uint Size;
        /// <summary>The largest datagram of the path in bytes.</summary>
        public uint Mtu;
        public ulong MessagesSent, MessagesReceived, DatagramsSent, DatagramsReceived, DatagramsLost, DatagramsAcknowledged;
        /// <summary>Bytes of messages that were accepted for sending, sent for the first time, and sent again.</summary>
        public ulong BytesPushed, BytesSent, BytesResent;
        /// <summary>Bytes of datagrams.</summary>
        public ulong ActualBytesSent, ActualBytesReceived;
        /// <summary>The smoothed round trip, then the last, the mean and the lowest ping.</summary>
        public ulong RoundTripUs, LastPingUs, AveragePingUs, LowestPingUs;
        /// <summary>Bytes that may be in flight, and that are.</summary>
        public uint CongestionWindow, InFlight;
        internal fixed uint waitingMessages[4];
        internal fixed uint waitingBytes[4];
        /// <summary>Share of the bytes that were sent again, 0 to 1, in all and in the last second.</summary>
        public double Loss, LossLastSecond;
        /// <summary>Datagrams that counted as lost and arrived after all.</summary>
        public ulong DatagramsLate;
        /// <summary>Bytes of messages that were delivered, and that were received in vain: repeated or overtaken.</summary>
        public ulong BytesProcessed, BytesIgnored;
        /// <summary>The counters of the same names in the last full second.</summary>
        public uint BytesPushedLastSecond, BytesSentLastSecond, BytesResentLastSecond, BytesProcessedLastSecond, BytesIgnoredLastSecond;
        public uint ActualBytesSentLastSecond, ActualBytesReceivedLastSecond;
        /// <summary>Lost messages that wait to be sent again, and their bytes.</summary>
        public uint WaitingResendMessages, WaitingResendBytes;
        internal uint hasClockDifference;
        internal long clockDifferenceMs;

        /// <summary>The clock of the peer minus that of this side in milliseconds, once it is known.</summary>
        public long? ClockDifferenceMs => hasClockDifference != 0 ? clockDifferenceMs : (long?)null;

        /// <summary>Returns the number of messages of a priority that wait to be sent.</summary>
        public uint WaitingMessages(Priority priority)
        {
            fixed (uint* waiting = waitingMessages)
                return waiting[(byte)priority & 3];
        }

        /// <summary>Returns the number of bytes of a priority that wait to be sent.</summary>
        public uint WaitingBytes(Priority priority)
        {
            fixed (uint* waiting = waitingBytes)
                return waiting[(byte)priority & 3];
        }
    }

    /// <summary>The options of an endpoint. The defaults are those of the library: a client on any IPv4 port.</summary>
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
        /// <summary>Connections that others may open. Default: 0, a client.</summary>
        public ushort MaxIncoming { get => raw.MaxIncoming; set => raw.MaxIncoming = value; }
        /// <summary>Connections in all, up to 65,534. 0: 64, or <see cref="MaxIncoming"/> if that is more.</summary>
        public uint MaxConnections { get => raw.MaxConnections; set => raw.MaxConnections = value; }
        /// <summary>Connections that one address may have. 0: three quarters of <see cref="MaxIncoming"/>, from 16 slots on.</summary>
        public ushort MaxPerAddress { get => raw.MaxPerAddress; set => raw.MaxPerAddress = value; }
        /// <summary>Connections that one network may have (24 bits of IPv4, 48 of IPv6). 0: seven eighths of <see cref="MaxIncoming"/>.</summary>
        public ushort MaxPerNetwork { get => raw.MaxPerNetwork; set => raw.MaxPerNetwork = value; }
        /// <summary>Half-open connections of one network (24 bits of IPv4, 64 of IPv6) without a cookie. Default: 8.</summary>
        public ushort MaxHalfOpenPerNetwork { get => raw.MaxHalfOpenPerNetwork; set => raw.MaxHalfOpenPerNetwork = value; }
        /// <summary>How clients prove their address. Default: <see cref="Rakwire.Cookies.Automatic"/>.</summary>
        public Cookies Cookies { get => raw.Cookies; set => raw.Cookies = value; }
        /// <summary>Clients without a cookie, for <see cref="Rakwire.Cookies.UnderLoad"/>.</summary>
        public ushort CookiesUnvalidated { get => raw.CookiesUnvalidated; set => raw.CookiesUnvalidated = value; }
        /// <summary>Pongs per second in all. 0: no ping is answered. Default: 1,000.</summary>
        public ushort PongsPerSecond { get => raw.PongsPerSecond; set => raw.PongsPerSecond = value; }
        /// <summary>Pongs per second for one network. Default: 20.</summary>
        public ushort PongsPerNetwork { get => raw.PongsPerNetwork; set => raw.PongsPerNetwork = value; }
        /// <summary>Least time between two connections of one address. Default: 0, for none.</summary>
        public uint ConnectionIntervalMs { get => raw.ConnectionIntervalMs; set => raw.ConnectionIntervalMs = value; }
        /// <summary>Networks of trusted proxies: their PROXY headers (version 2) name the address of a client. Such as "10.0.0.7/32,fd00::/64".</summary>
        public string TrustedProxies { get; set; }
        /// <summary>Blocks of 512 bytes for messages in flight. 0: as many as the connections need.</summary>
        public uint Blocks { get => raw.Blocks; set => raw.Blocks = value; }
        /// <summary>Blocks that one connection may hold in each direction. Default: 0, no limit besides the shares.</summary>
        public uint ConnectionBlocks { get => raw.ConnectionBlocks; set => raw.ConnectionBlocks = value; }
        /// <summary>The rule for the rate of connections. Default: <see cref="Rakwire.Congestion.Delay"/>.</summary>
        public Congestion Congestion { get => raw.Congestion; set => raw.Congestion = value; }
        /// <summary>Bits per second that each connection may send. Default: 0, no limit.</summary>
        public ulong OutgoingLimit { get => raw.OutgoingLimit; set => raw.OutgoingLimit = value; }
        /// <summary>The longest message in bytes that is received. Default: 4,000,000.</summary>
        public uint MaxMessageLen { get => raw.MaxMessageLen; set => raw.MaxMessageLen = value; }
        /// <summary>The largest MTU, 576 to 1,492. Default: 1,492.</summary>
        public ushort Mtu { get => raw.Mtu; set => raw.Mtu = value; }
        /// <summary>The RakNet protocol version of connections that this endpoint opens. Default: 6.</summary>
        public byte ProtocolVersion { get => raw.ProtocolVersion; set => raw.ProtocolVersion = value; }
        /// <summary>The GUID of the endpoint. 0: a random one.</summary>
        public ulong Guid { get => raw.Guid; set => raw.Guid = value; }
        /// <summary>Messages and advertisements of peers without a connection become events. Default: false.</summary>
        public bool OutOfBand { get => raw.OutOfBand != 0; set => raw.OutOfBand = Library.Flag(value); }
        /// <summary>Each client waits for a decision of the application. Default: false.</summary>
        public bool DeferIncoming { get => raw.DeferIncoming != 0; set => raw.DeferIncoming = Library.Flag(value); }
        /// <summary>An attempt ends immediately when the network reports that nothing listens there. Default: true.</summary>
        public bool HearsUnreachable { get => raw.HearsUnreachable != 0; set => raw.HearsUnreachable = Library.Flag(value); }
        /// <summary>Silence in milliseconds after which a connection is lost. Default: 10,000.</summary>
        public uint TimeoutMs { get => raw.TimeoutMs; set => raw.TimeoutMs = value; }
        /// <summary>Time between two pings of a connection. 0: no pings. Default: 5,000.</summary>
        public uint PingIntervalMs { get => raw.PingIntervalMs; set => raw.PingIntervalMs = value; }
        /// <summary>Longest wait for acknowledgements while a connection closes. Default: 5,000.</summary>
        public uint CloseTimeoutMs { get => raw.CloseTimeoutMs; set => raw.CloseTimeoutMs = value; }
        /// <summary>Longest handshake after the first answer. Default: 10,000.</summary>
        public uint HandshakeTimeoutMs { get => raw.HandshakeTimeoutMs; set => raw.HandshakeTimeoutMs = value; }
        /// <summary>Time after which an unreliable message that could not be sent is dropped. Default: 1,000.</summary>
        public uint UnreliableTimeoutMs { get => raw.UnreliableTimeoutMs; set => raw.UnreliableTimeoutMs = value; }
        /// <summary>Time between two requests of an attempt. Default: 500.</summary>
        public uint ConnectIntervalMs { get => raw.ConnectIntervalMs; set => raw.ConnectIntervalMs = value; }
        /// <summary>Requests of an attempt, 1 to 255. Default: 12.</summary>
        public uint ConnectAttempts { get => raw.ConnectAttempts; set => raw.ConnectAttempts = value; }
        /// <summary>Parts of a large message between two progress events. Default: 0, for none.</summary>
        public uint ProgressInterval { get => raw.ProgressInterval; set => raw.ProgressInterval = value; }
        /// <summary>The password that clients need, at most 255 bytes. It is not encrypted on the network.</summary>
        public byte[] Password { get; set; }
        /// <summary>A bad network in both directions, such as "loss=5%,latency=50ms,jitter=10ms,seed=7". Null: none.</summary>
        public string Simulate { get; set; }
        /// <summary>The endpoint can open secure connections. A key implies it.</summary>
        public bool Secure { get => raw.Secure != 0; set => raw.Secure = Library.Flag(value); }
        /// <summary>The private key of a server, 32 bytes. Null: a server without security.</summary>
        public byte[] ServerKey { get; set; }
        /// <summary>The private key by which servers know this client, 32 bytes.</summary>
        public byte[] IdentityKey { get; set; }
        /// <summary>The file of the private key of a server, instead of <see cref="ServerKey"/>.</summary>
        public string ServerKeyFile { get; set; }
        /// <summary>The file of the private key of this client, instead of <see cref="IdentityKey"/>.</summary>
        public string IdentityKeyFile { get; set; }
        /// <summary>The keys of connect tokens that a server accepts, 32 bytes each. Null: no token is needed.</summary>
        public byte[][] TokenKeys { get; set; }
        /// <summary>The file of a token key, next to <see cref="TokenKeys"/>.</summary>
        public string TokenKeyFile { get; set; }
        /// <summary>A file to append the keys of secure connections to, by which captures of them can be read. Only for development.</summary>
        public string KeyLogFile { get; set; }
        /// <summary>A server with a key refuses plain clients. Default: false.</summary>
        public bool RequiresSecurity { get => raw.RequiresSecurity != 0; set => raw.RequiresSecurity = Library.Flag(value); }
        /// <summary>A server with a key refuses clients without an identity. Default: false.</summary>
        public bool RequiresIdentity { get => raw.RequiresIdentity != 0; set => raw.RequiresIdentity = Library.Flag(value); }

        /// <summary>Protocol versions that a server accepts, at most eight and none of them 0. Default: 6, 10, 11.</summary>
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
                    throw new ArgumentException("at most eight versions", nameof(value));
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

    /// <summary>The options of one attempt to connect. 0 and null select those of the endpoint.</summary>
    public sealed unsafe class ConnectOptions
    {
        NativeConnectOptions raw;

        public ConnectOptions()
        {
            fixed (NativeConnectOptions* options = &raw)
                Library.Check(Native.rakwire_connect_options_init(options, (UIntPtr)sizeof(NativeConnectOptions)));
        }

        /// <summary>The longest time of the whole attempt. 0: no limit besides the attempts.</summary>
        public uint ConnectTimeoutMs { get => raw.ConnectTimeoutMs; set => raw.ConnectTimeoutMs = value; }
        /// <summary>Silence after which this connection is lost.</summary>
        public uint TimeoutMs { get => raw.TimeoutMs; set => raw.TimeoutMs = value; }
        /// <summary>Time between two requests.</summary>
        public uint IntervalMs { get => raw.IntervalMs; set => raw.IntervalMs = value; }
        /// <summary>The number of requests.</summary>
        public byte Attempts { get => raw.Attempts; set => raw.Attempts = value; }
        /// <summary>The RakNet protocol version.</summary>
        public byte ProtocolVersion { get => raw.ProtocolVersion; set => raw.ProtocolVersion = value; }
        /// <summary>The password, at most 255 bytes.</summary>
        public byte[] Password { get; set; }
        /// <summary>The server that is accepted. Default: <see cref="Rakwire.Trust.None"/>, a plain connection.</summary>
        public Trust Trust { get => raw.Trust; set => raw.Trust = value; }
        /// <summary>The public key of the server, 32 bytes, for <see cref="Rakwire.Trust.Key"/> and <see cref="Rakwire.Trust.Known"/>.</summary>
        public byte[] ServerKey { get; set; }
        /// <summary>The hash of the next key of the server, 24 bytes, for <see cref="Rakwire.Trust.Known"/>.</summary>
        public byte[] NextKeyHash { get; set; }
        /// <summary>The private key of this client for this connection, 32 bytes.</summary>
        public byte[] IdentityKey { get; set; }
        /// <summary>Data that the server gets with the identity, at most 95 bytes.</summary>
        public byte[] IdentityData { get; set; }
        /// <summary>A connect token, instead of a password and of <see cref="Trust"/>.</summary>
        public string Token { get; set; }
        /// <summary>The server of the token to connect to, from 0.</summary>
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

    /// <summary>An event, which is valid until the next <see cref="Endpoint.Poll"/>. Fields that its kind does not name are 0.</summary>
    public readonly unsafe ref struct EndpointEvent
    {
        readonly Endpoint endpoint;
        readonly ulong number;

        internal EndpointEvent(Endpoint endpoint, ulong number)
        {
            this.endpoint = endpoint;
            this.number = number;
        }

        /// <summary>The fields, which lie in the endpoint, so that an event is not copied.</summary>
        internal ref NativeEvent Raw
        {
            get
            {
                if (endpoint.polls != number)
                    throw new ObjectDisposedException(nameof(EndpointEvent), "an event is valid until the next Poll: Keep its bytes, and copy the rest");
                return ref endpoint.current;
            }
        }

        public EventKind Kind => Raw.Kind;
        /// <summary>The connection, where the event has one.</summary>
        public Connection Connection => new Connection(Raw.Connection);
        /// <summary>The client of <see cref="EventKind.Incoming"/>.</summary>
        public Request Request => new Request(Raw.Request);
        /// <summary>The address of the peer, except for messages, receipts, progress and MTU, which name the connection.</summary>
        public Address Address => Raw.Address;
        /// <summary>The GUID of the peer, where the event has one.</summary>
        public ulong Guid => Raw.Guid;
        /// <summary>The reliability of a message. Receipts are not visible at the receiver.</summary>
        public Reliability Reliability => Raw.Reliability;
        /// <summary>The ordering channel of a message, 0 to 31.</summary>
        public byte Channel => Raw.Channel;
        public Failure Failure => (Failure)Raw.Reason;
        public DisconnectReason DisconnectReason => (DisconnectReason)Raw.Reason;
        public Refusal Refusal => (Refusal)Raw.Reason;
        /// <summary>A sentence about the reason.</summary>
        public string ReasonText => Library.Text(Native.rakwire_reason_text((uint)Raw.Kind, Raw.Reason));
        /// <summary>The number that <see cref="Endpoint.Send"/> returned.</summary>
        public uint Receipt => Raw.Receipt;
        public Outcome Outcome => Raw.Outcome;
        public Side Side => Raw.Side;
        /// <summary>The round trip of a ping in microseconds.</summary>
        public ulong LatencyUs => Raw.LatencyUs;
        /// <summary>Parts of a large message that arrived, of <see cref="ProgressParts"/>.</summary>
        public uint ProgressDone => Raw.ProgressDone;
        public uint ProgressParts => Raw.ProgressParts;
        /// <summary>The number of the large message.</summary>
        public ushort ProgressMessage => Raw.ProgressMessage;
        /// <summary>True if this side sends the large message.</summary>
        public bool IsOutgoing => Raw.Outgoing != 0;
        /// <summary>The new MTU.</summary>
        public ushort Mtu => Raw.Mtu;
        /// <summary>The protocol version of the server, for <see cref="Rakwire.Failure.Version"/>.</summary>
        public byte ServerVersion => Raw.ServerVersion;
        /// <summary>True if a refused client has proved its address.</summary>
        public bool IsValidated => Raw.Validated != 0;

        /// <summary>The bytes of a message, pong or advertisement. Throws after the next Poll, Keep or Dispose.</summary>
        public ReadOnlySpan<byte> Data
        {
            get
            {
                ref NativeEvent raw = ref Raw;
                if (endpoint.isTaken)
                    throw new ObjectDisposedException(nameof(EndpointEvent), "the bytes were kept, or the endpoint is closed");
                if (raw.Message == 0)
                    return default(ReadOnlySpan<byte>);
                return new ReadOnlySpan<byte>(raw.Data, (int)raw.Length);
            }
        }

        /// <summary>Copies the bytes into an array that grows if it is too small, for APIs that need a segment.</summary>
        public ArraySegment<byte> CopyTo(ref byte[] array)
        {
            ReadOnlySpan<byte> data = Data;
            if (array == null || array.Length < data.Length)
                array = new byte[Math.Max(data.Length, array == null ? 2048 : 2 * array.Length)];
            data.CopyTo(array);
            return new ArraySegment<byte>(array, 0, data.Length);
        }

        /// <summary>Keeps the bytes beyond the next Poll. They are borrowed until the result is disposed.</summary>
        public KeptMessage Keep()
        {
            ReadOnlySpan<byte> data = Data;
            if (Raw.Message == 0)
                throw new InvalidOperationException("this event has no bytes");
            return endpoint.Keep(data.Length);
        }
    }

    /// <summary>The bytes of a message that outlast the next Poll. Dispose releases them; a second Dispose does nothing.</summary>
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

        /// <summary>The bytes. Throws once they are released, or the endpoint is closed.</summary>
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

    /// <summary>The endpoints of a thread that were collected without Dispose. The library accepts their end only from that thread.</summary>
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

    /// <summary>An endpoint: a socket with its connections. It belongs to the thread that opened it; another thread gets an exception.</summary>
    /// <remarks>
    /// Dispose closes it immediately, and its peers notice by their timeout; <see cref="Close"/> disconnects and waits. An
    /// endpoint that is collected is closed when its thread next opens or updates one. A call after Dispose throws <see cref="ErrorCode.Handle"/>.
    /// </remarks>
    public sealed unsafe class Endpoint : IDisposable
    {
        readonly OwnerThread owner = OwnerThread.Current;
        readonly List<KeptMessage.Slot> kept = new List<KeptMessage.Slot>();
        readonly Stack<KeptMessage.Slot> free = new Stack<KeptMessage.Slot>();
        byte[] joined = new byte[2048];
        ulong handle;
        /// <summary>The last event, its number, and whether its bytes were kept or ended with the endpoint.</summary>
        internal NativeEvent current;
        internal ulong polls;
        internal bool isTaken;

        /// <summary>No limit of <see cref="Wait"/>.</summary>
        public const uint Forever = 4294967295;

        /// <summary>Opens an endpoint for this thread. Null: a client on any IPv4 port.</summary>
        public Endpoint(EndpointOptions options = null)
        {
            owner.CloseAbandoned();
            handle = (options ?? new EndpointOptions()).Open();
            current.Size = (uint)sizeof(NativeEvent);
        }

        ~Endpoint()
        {
            if (handle != 0)
                owner.Abandon(handle);
        }

        /// <summary>Closes the endpoint. Bytes that are still borrowed become invalid.</summary>
        public void Dispose()
        {
            if (handle == 0)
                return;
            Library.Check(Native.rakwire_endpoint_close(handle));
            handle = 0;
            TakeBytes();
            foreach (KeptMessage.Slot slot in kept)
                slot.Message = 0;
            GC.SuppressFinalize(this);
        }

        /// <summary>Disconnects all connections, waits for their end, and disposes. Events are dropped. It blocks for at most a time.</summary>
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

        /// <summary>Handles received datagrams and due timers, and sends. Call it once a frame, then <see cref="Poll"/>.</summary>
        public void Update()
        {
            owner.CloseAbandoned();
            Library.Check(Native.rakwire_update(handle));
        }

        /// <summary>Sends queued datagrams as far as congestion control allows. Call it at the end of a frame.</summary>
        public void Flush() => Library.Check(Native.rakwire_flush(handle));

        /// <summary>Waits until a datagram has arrived or a timer is due, and returns true then. Poll all events first.</summary>
        /// <remarks>It returns false once the time is over, or a signal came.</remarks>
        public bool Wait(uint timeoutMs) => Library.Check(Native.rakwire_wait(handle, timeoutMs)) > 0;

        /// <summary>The microseconds until the endpoint must be updated if no datagram arrives. Null without a timer.</summary>
        public ulong? TimeoutUs
        {
            get
            {
                ulong microseconds;
                return Library.Check(Native.rakwire_timeout(handle, &microseconds)) > 0 ? microseconds : (ulong?)null;
            }
        }

        /// <summary>The socket, to wait for it: a file descriptor, or a SOCKET in Windows. Only the library may use or close it.</summary>
        public IntPtr Socket
        {
            get
            {
                ulong socket;
                Library.Check(Native.rakwire_socket(handle, &socket));
                return (IntPtr)unchecked((long)socket);
            }
        }

        /// <summary>Takes the next event. Releases the bytes of the last one.</summary>
        public bool Poll(out EndpointEvent next)
        {
            int found;
            fixed (NativeEvent* raw = &current)
                found = Library.Check(Native.rakwire_poll_next(handle, raw));
            isTaken = false;
            next = new EndpointEvent(this, ++polls);
            return found > 0;
        }

        /// <summary>Takes the bytes from the last event, which has none for the next Poll to release.</summary>
        void TakeBytes()
        {
            isTaken |= current.Message != 0;
            current.Message = 0;
        }

        internal KeptMessage Keep(int length)
        {
            if (free.Count == 0)
            {
                free.Push(new KeptMessage.Slot { Endpoint = this });
                kept.Add(free.Peek());
            }
            KeptMessage.Slot slot = free.Pop();
            slot.Message = current.Message;
            slot.Data = (IntPtr)current.Data;
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

        /// <summary>The address of the socket with its actual port.</summary>
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

        /// <summary>Starts to open a connection to "host:port". An event reports when it is open, or why it failed.</summary>
        /// <remarks>A name blocks the thread until it is resolved. Null with a token: the server that the token names.</remarks>
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

        /// <summary>Accepts a client. <see cref="EventKind.Connected"/> follows when its handshake is finished.</summary>
        public void Accept(Request request) => Library.Check(Native.rakwire_accept(handle, request.Id));

        /// <summary>Refuses a client: the server is full. It may retry.</summary>
        public void Refuse(Request request) => Library.Check(Native.rakwire_refuse(handle, request.Id));

        /// <summary>Does not answer a client. If it retries, that is a new request.</summary>
        public void Ignore(Request request) => Library.Check(Native.rakwire_ignore(handle, request.Id));

        /// <summary>Sends a copy of a message, and returns the number of its receipt or 0. Its first byte is at least 0x1B; use 0x86 and above.</summary>
        /// <remarks>It leaves with <see cref="Flush"/> or <see cref="Update"/>.</remarks>
        public uint Send(Connection to, ReadOnlySpan<byte> message, Reliability reliability = Reliability.ReliableOrdered,
            byte channel = 0, Priority priority = Priority.Medium)
        {
            uint receipt;
            Library.Check((int)TrySend(to, message, out receipt, reliability, channel, priority));
            return receipt;
        }

        /// <summary>As <see cref="Send"/>, and returns an error instead of throwing: <see cref="ErrorCode.NoRoom"/> is usual for a busy connection.</summary>
        public ErrorCode TrySend(Connection to, ReadOnlySpan<byte> message, Reliability reliability = Reliability.ReliableOrdered,
            byte channel = 0, Priority priority = Priority.Medium)
        {
            uint receipt;
            return TrySend(to, message, out receipt, reliability, channel, priority);
        }

        /// <summary>As the other TrySend, with the number of the receipt.</summary>
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

        /// <summary>As the other TrySend, for a message in two pieces, its first byte and the body.</summary>
        public ErrorCode TrySend(Connection to, byte id, ReadOnlySpan<byte> body, Reliability reliability, byte channel = 0,
            Priority priority = Priority.Medium)
        {
            if (joined.Length <= body.Length)
                joined = new byte[Math.Max(body.Length + 1, 2 * joined.Length)];
            joined[0] = id;
            body.CopyTo(new Span<byte>(joined, 1, body.Length));
            return TrySend(to, new ReadOnlySpan<byte>(joined, 0, body.Length + 1), reliability, channel, priority);
        }

        /// <summary>Sends a message to all open connections but one, and returns how many took it. Those without room did not.</summary>
        public int Broadcast(ReadOnlySpan<byte> message, Reliability reliability = Reliability.ReliableOrdered, byte channel = 0,
            Priority priority = Priority.Medium, Connection except = default(Connection))
        {
            uint refused;
            return Broadcast(message, out refused, reliability, channel, priority, except);
        }

        /// <summary>As the other Broadcast, with the number of connections without room.</summary>
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

        /// <summary>Begins to close a connection or an attempt. Reliable messages that were sent before arrive first.</summary>
        public void Disconnect(Connection connection) => Library.Check(Native.rakwire_disconnect(handle, connection.Id));

        /// <summary>As <see cref="Disconnect(Connection)"/>, and returns false if the endpoint has no such connection.</summary>
        public bool TryDisconnect(Connection connection) => Exists(Native.rakwire_disconnect(handle, connection.Id));

        /// <summary>Checks a result, and throws unless it is the end of a connection.</summary>
        static bool Exists(int result) => result != (int)ErrorCode.NoConnection && Library.Check(result) >= 0;

        /// <summary>Sends a last message and starts to end the connection. It ends also if the message is refused.</summary>
        public void Disconnect(Connection connection, ReadOnlySpan<byte> lastMessage, Reliability reliability = Reliability.ReliableOrdered,
            byte channel = 0, Priority priority = Priority.Medium)
        {
            fixed (byte* data = &MemoryMarshal.GetReference(lastMessage))
                Library.Check(Native.rakwire_disconnect_with(handle, connection.Id, data, (UIntPtr)lastMessage.Length,
                    (byte)reliability, channel, (byte)priority));
        }

        /// <summary>Changes the silence after which a connection is lost.</summary>
        public void SetTimeout(Connection connection, uint timeoutMs) =>
            Library.Check(Native.rakwire_set_timeout(handle, connection.Id, timeoutMs));

        /// <summary>The number of connections, including those that are being opened or closed.</summary>
        public int ConnectionCount => Library.Check(Native.rakwire_connections(handle, null, UIntPtr.Zero));

        /// <summary>Stores all connections, and returns their number. Throws <see cref="ErrorCode.Buffer"/> if the array is too short.</summary>
        public int Connections(Span<Connection> into)
        {
            if (into.IsEmpty && ConnectionCount > 0)
                throw Library.Error((int)ErrorCode.Buffer, Library.Text(Native.rakwire_result_text((int)ErrorCode.Buffer)));
            fixed (Connection* first = &MemoryMarshal.GetReference(into))
                return Library.Check(Native.rakwire_connections(handle, (ulong*)first, (UIntPtr)into.Length));
        }

        /// <summary>Returns the address, GUID and state of a connection, the MTU of its path and the longest message that it accepts.</summary>
        public ConnectionInfo Info(Connection connection)
        {
            ConnectionInfo info;
            return TryInfo(connection, out info) ? info : throw Library.Error((int)ErrorCode.NoConnection, Library.LastError);
        }

        /// <summary>As <see cref="Info"/>, and returns false if the connection has ended.</summary>
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

        /// <summary>Returns how many datagrams were dropped for each reason that has any, such as "TooShort".</summary>
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

        /// <summary>Advice for the operator once the counters show that clients cannot connect, otherwise an empty string.</summary>
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

        /// <summary>As <see cref="Stats(Connection)"/>, and returns false if the connection has ended.</summary>
        public bool TryStats(Connection connection, out ConnectionStats stats)
        {
            var found = new ConnectionStats { Size = (uint)sizeof(ConnectionStats) };
            bool exists = Exists(Native.rakwire_connection_stats(handle, connection.Id, &found));
            stats = found;
            return exists;
        }

        /// <summary>Returns the key, identity and connect token of the peer of a connection.</summary>
        public SecurePeer SecurePeer(Connection connection)
        {
            var peer = new NativeSecurePeer { Size = (uint)sizeof(NativeSecurePeer) };
            Library.Check(Native.rakwire_secure_peer(handle, connection.Id, &peer));
            return new SecurePeer(&peer);
        }

        /// <summary>Pings a server without a connection. <see cref="EventKind.Pong"/> follows if it answers.</summary>
        public void Ping(Address server) => Library.Check(Native.rakwire_ping(handle, &server, 0, 0));

        /// <summary>Pings all servers at a broadcast address. Each that answers within five seconds is an event.</summary>
        public void Discover(Address broadcast, bool onlyOpen = false) =>
            Library.Check(Native.rakwire_ping(handle, &broadcast, 1, Library.Flag(onlyOpen)));

        /// <summary>Sets the data with which the endpoint answers pings, at most 399 bytes.</summary>
        public void SetAdvertisement(ReadOnlySpan<byte> advertisement)
        {
            fixed (byte* data = &MemoryMarshal.GetReference(advertisement))
                Library.Check(Native.rakwire_set_advertisement(handle, data, (UIntPtr)advertisement.Length));
        }

        /// <summary>Advertises the endpoint once to a peer without a connection, with at most 398 bytes.</summary>
        public void Advertise(Address to, ReadOnlySpan<byte> advertisement)
        {
            fixed (byte* data = &MemoryMarshal.GetReference(advertisement))
                Library.Check(Native.rakwire_advertise(handle, &to, data, (UIntPtr)advertisement.Length));
        }

        /// <summary>Sends 1 to 399 bytes once to a peer without a connection, which must have <see cref="EndpointOptions.OutOfBand"/> on.</summary>
        public void SendOutOfBand(Address to, ReadOnlySpan<byte> message)
        {
            fixed (byte* data = &MemoryMarshal.GetReference(message))
                Library.Check(Native.rakwire_send_out_of_band(handle, &to, data, (UIntPtr)message.Length));
        }

        /// <summary>Sets the password that new clients need, at most 255 bytes. Empty: none.</summary>
        public void SetPassword(ReadOnlySpan<byte> password)
        {
            fixed (byte* data = &MemoryMarshal.GetReference(password))
                Library.Check(Native.rakwire_set_password(handle, data, (UIntPtr)password.Length));
        }

        /// <summary>Bans an address, a wildcard such as "192.0.2.*" or a prefix such as "2001:db8::/32" for a time, 0 for ever.</summary>
        public void Ban(string addresses, uint durationMs = 0)
        {
            fixed (byte* text = Library.Utf8(addresses))
                Library.Check(Native.rakwire_ban(handle, text, durationMs));
        }

        /// <summary>Ends a ban. Returns false if there was none.</summary>
        public bool Unban(string addresses)
        {
            fixed (byte* text = Library.Utf8(addresses))
                return Library.Check(Native.rakwire_unban(handle, text)) > 0;
        }

        /// <summary>Returns true if the address is banned now.</summary>
        public bool IsBanned(Address address) => Library.Check(Native.rakwire_is_banned(handle, &address)) > 0;
    }

    /// <summary>The peer of a secure connection.</summary>
    public sealed unsafe class SecurePeer
    {
        /// <summary>False for a plain connection, which has no other values.</summary>
        public readonly bool IsSecure;
        /// <summary>The public key of the server, or of the identity of the client. Null for an anonymous client.</summary>
        public readonly byte[] Key;
        /// <summary>The hash of the key that the server will have next, or null.</summary>
        public readonly byte[] NextKeyHash;
        /// <summary>The data that the client sent with its identity.</summary>
        public readonly byte[] IdentityData;
        /// <summary>True if the client showed a connect token, to which the following values belong.</summary>
        public readonly bool HasToken;
        public readonly ulong TokenUserId;
        /// <summary>The expiry of the token, in seconds since 1970.</summary>
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

    /// <summary>Keys of secure connections, 32 bytes each.</summary>
    public static unsafe class Keys
    {
        /// <summary>Creates a new private key, and its public key.</summary>
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

        /// <summary>Creates a key in a file that does not exist yet, which only its owner may read, and returns its public key.</summary>
        public static byte[] CreateFile(string path)
        {
            var key = new byte[32];
            fixed (byte* text = Library.Utf8(path), to = key)
                Library.Check(Native.rakwire_key_file_create(text, to));
            return key;
        }

        /// <summary>Returns the public key of a file that <see cref="CreateFile"/> wrote.</summary>
        public static byte[] PublicKeyOfFile(string path)
        {
            var key = new byte[32];
            fixed (byte* text = Library.Utf8(path), to = key)
                Library.Check(Native.rakwire_key_file_public(text, to));
            return key;
        }

        /// <summary>Creates a token key in a file that does not exist yet, which only its owner may read.</summary>
        /// <remarks>The server and its backend need the same key.</remarks>
        public static void CreateTokenKeyFile(string path)
        {
            fixed (byte* text = Library.Utf8(path))
                Library.Check(Native.rakwire_token_key_file_create(text));
        }
    }

    /// <summary>The contents of a connect token, which a backend makes for a user.</summary>
    public sealed unsafe class TokenClaims
    {
        const int LongestToken = 4096;

        /// <summary>The user, for the backend.</summary>
        public ulong UserId { get; set; }
        /// <summary>The expiry, in seconds since 1970.</summary>
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

        /// <summary>Creates a connect token with the token key of a file that <see cref="Keys.CreateTokenKeyFile"/> wrote.</summary>
        public string ToTokenByFile(string tokenKeyFile) => Create(null, tokenKeyFile);

        string Create(byte[] tokenKey, string tokenKeyFile)
        {
            int servers = ServerNames == null ? 0 : ServerNames.Length;
            if (servers < 1 || servers > 4 || ServerKeys == null || ServerKeys.Length != servers)
                throw new ArgumentException("a token has 1 to 4 servers, and a key for each");
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

    /// <summary>The C library as a whole.</summary>
    public static unsafe class Library
    {
        /// <summary>The version, such as "0.1.0".</summary>
        public static string Version => Text(Native.rakwire_version());
        /// <summary>The features of this build.</summary>
        public static Features Features => (Features)Native.rakwire_features();
        /// <summary>The sentence about the last call on this thread that failed, for methods that return an <see cref="ErrorCode"/>.</summary>
        public static string LastError => Text(Native.rakwire_last_error());
        /// <summary>Returns a general sentence about an error.</summary>
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

        /// <summary>Converts to UTF-8 with a zero byte as its end.</summary>
        internal static byte[] Utf8(string text)
        {
            if (text == null)
                return null;
            if (text.IndexOf('\0') >= 0)
                throw Error((int)ErrorCode.String, "a string has a zero byte");
            return Encoding.UTF8.GetBytes(text + "\0");
        }

        internal static byte Flag(bool value) => value ? (byte)1 : (byte)0;

        internal static UIntPtr Length(byte[] bytes) => (UIntPtr)(bytes == null ? 0 : bytes.Length);

        /// <summary>Checks the length of a key, since the library reads 32 bytes.</summary>
        internal static byte[] Key(byte[] key)
        {
            if (key != null && key.Length != 32)
                throw new ArgumentException("a key has 32 bytes, not " + key.Length);
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
                throw new ArgumentException("needed are " + length + " bytes, not " + from.Length);
            Marshal.Copy(from, 0, (IntPtr)to, length);
        }
    }

#pragma warning disable 649 // The library writes the fields.
    [StructLayout(LayoutKind.Sequential)]
    unsafe struct NativeOptions
    {
        internal uint Size;
        internal byte ProtocolVersion, OutOfBand, DeferIncoming, HearsUnreachable;
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
