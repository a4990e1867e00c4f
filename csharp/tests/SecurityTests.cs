using System;
using System.IO;
using System.Linq;
using System.Text;

namespace Rakwire.Tests
{
    static class SecurityTests
    {
        /// <summary>Returns true if the library was built without security. Also checks that its functions then fail
        /// with Unsupported.</summary>
        static bool IsMissingAsReported()
        {
            if ((Library.Features & Features.Secure) != 0)
                return false;
            Expect.Fails(ErrorCode.Unsupported, () => Keys.Generate(out byte[] unused));
            Expect.Fails(ErrorCode.Unsupported, () => new Endpoint(new EndpointOptions { Secure = true }));
            return true;
        }

        static ulong InOneMinute => (ulong)DateTimeOffset.UtcNow.ToUnixTimeSeconds() + 60;

        [Test]
        static void servers_are_identified_by_key_and_clients_by_identity()
        {
            if (IsMissingAsReported())
                return;
            byte[] serverKey = Keys.Generate(out byte[] serverPublic), clientKey = Keys.Generate(out byte[] clientPublic);
            Expect.Bytes(serverPublic, Keys.PublicKey(serverKey));
            EndpointOptions server = Pair.ServerOptions(), client = Pair.ClientOptions();
            server.ServerKey = serverKey;
            server.RequiresSecurity = true;
            server.RequiresIdentity = true;
            client.Secure = true;
            using (var pair = new Pair(server, client))
            {
                pair.Client.Connect(pair.ServerAddress);
                Expect.Equal(Failure.SecurityRequired, (Failure)pair.WaitFor(pair.Client, EventKind.ConnectFailed).Reason);
                pair.Client.Connect(pair.ServerAddress, new ConnectOptions { Trust = Trust.Key, ServerKey = clientPublic });
                Expect.Equal(Failure.PublicKey, (Failure)pair.WaitFor(pair.Client, EventKind.ConnectFailed).Reason);
                pair.Client.Connect(pair.ServerAddress, new ConnectOptions { Trust = Trust.Key, ServerKey = serverPublic });
                Expect.Equal(Failure.IdentityRequired, (Failure)pair.WaitFor(pair.Client, EventKind.ConnectFailed).Reason);
                pair.Connect(new ConnectOptions
                {
                    Trust = Trust.Key, ServerKey = serverPublic, IdentityKey = clientKey, IdentityData = Encoding.UTF8.GetBytes("anna"),
                });
                SecurePeer peer = pair.Server.SecurePeer(pair.Back);
                Expect.True(peer.IsSecure && !peer.HasToken, "the client is secure, and has no token");
                Expect.Bytes(clientPublic, peer.Key);
                Expect.Equal("anna", Encoding.UTF8.GetString(peer.IdentityData));
                Expect.Bytes(serverPublic, pair.Client.SecurePeer(pair.There).Key);
                pair.Client.Send(pair.There, new byte[] { 0x86, 3 });
                Expect.Bytes(new byte[] { 0x86, 3 }, pair.WaitFor(pair.Server, EventKind.Message).Data);
            }
        }

        [Test]
        static void a_connect_token_authenticates_its_user()
        {
            if (IsMissingAsReported())
                return;
            byte[] serverKey = Keys.Generate(out byte[] serverPublic), clientKey = Keys.Generate(out byte[] clientPublic);
            byte[] tokenKey = Keys.Generate(out byte[] otherPublic);
            EndpointOptions server = Pair.ServerOptions(), client = Pair.ClientOptions();
            server.ServerKey = serverKey;
            server.TokenKeys = new[] { Keys.Generate(out byte[] unused), tokenKey };
            client.Secure = true;
            using (var pair = new Pair(server, client))
            {
                var claims = new TokenClaims
                {
                    UserId = 42, Expires = InOneMinute, ClientKey = clientPublic, UserData = new byte[] { 1, 2, 3 },
                    ServerNames = new[] { "127.0.0.1:9", pair.ServerAddress }, ServerKeys = new[] { otherPublic, serverPublic },
                };
                string token = claims.ToToken(tokenKey);
                Expect.Fails(ErrorCode.Security, () => pair.Client.Connect(null, new ConnectOptions { Token = token }));
                pair.Client.Connect(pair.ServerAddress, new ConnectOptions { Trust = Trust.Key, ServerKey = serverPublic, IdentityKey = clientKey });
                Expect.Equal(Refusal.NoToken, (Refusal)pair.WaitFor(pair.Server, EventKind.Refused).Reason);
                pair.WaitFor(pair.Client, EventKind.ConnectFailed);
                pair.There = pair.Client.Connect(null, new ConnectOptions { Token = token, TokenServer = 1, IdentityKey = clientKey });
                pair.Back = pair.WaitFor(pair.Server, EventKind.Connected).Connection;
                SecurePeer peer = pair.Server.SecurePeer(pair.Back);
                Expect.True(peer.HasToken && peer.TokenUserId == 42 && peer.TokenExpires == claims.Expires,
                    "the server sees the claims of the token");
                Expect.Bytes(claims.UserData, peer.TokenData);
            }
        }

        [Test]
        static void invalid_token_claims_are_refused()
        {
            if (IsMissingAsReported())
                return;
            byte[] key = Keys.Generate(out byte[] publicKey);
            Func<TokenClaims> claims = () => new TokenClaims
            {
                Expires = InOneMinute, ClientKey = publicKey, ServerNames = new[] { "127.0.0.1:9" }, ServerKeys = new[] { publicKey },
            };
            Expect.True(claims().ToToken(key).Length > 100, "valid claims result in a token");
            Expect.Fails(ErrorCode.Security, () => { TokenClaims one = claims(); one.UserData = new byte[129]; one.ToToken(key); });
            Expect.Throws<ArgumentException>(() => { TokenClaims one = claims(); one.ServerNames = new string[0]; one.ToToken(key); });
            Expect.Throws<ArgumentException>(() => { TokenClaims one = claims(); one.ServerKeys = new byte[2][]; one.ToToken(key); });
            Expect.Throws<ArgumentException>(() => { TokenClaims one = claims(); one.ClientKey = new byte[31]; one.ToToken(key); });
            Expect.Fails(ErrorCode.Null, () => claims().ToToken(null));
        }

        [Test]
        static void a_key_file_is_created_only_once_and_configures_a_server()
        {
            if (IsMissingAsReported())
                return;
            string path = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName());
            try
            {
                byte[] key = Keys.CreateFile(path);
                Expect.Bytes(key, Keys.PublicKeyOfFile(path));
                Expect.Fails(ErrorCode.System, () => Keys.CreateFile(path));
                EndpointOptions server = Pair.ServerOptions(), client = Pair.ClientOptions();
                server.ServerKeyFile = path;
                client.Secure = true;
                using (var pair = new Pair(server, client))
                {
                    var known = new ConnectOptions { Trust = Trust.Known, ServerKey = new byte[32], NextKeyHash = new byte[24] };
                    pair.Client.Connect(pair.ServerAddress, known);
                    Expect.Equal(Failure.PublicKey, (Failure)pair.WaitFor(pair.Client, EventKind.ConnectFailed).Reason);
                    pair.Connect(new ConnectOptions { Trust = Trust.Key, ServerKey = key });
                    Expect.True(pair.Server.SecurePeer(pair.Back).Key == null, "the client is anonymous");
                }
            }
            finally
            {
                File.Delete(path);
            }
        }

        [Test]
        static void a_client_connects_with_a_token_made_from_the_token_key_file()
        {
            if (IsMissingAsReported())
                return;
            string path = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName()), log = path + ".log";
            try
            {
                Keys.CreateTokenKeyFile(path);
                Expect.Fails(ErrorCode.System, () => Keys.CreateTokenKeyFile(path));
                byte[] serverKey = Keys.Generate(out byte[] serverPublic), clientKey = Keys.Generate(out byte[] clientPublic);
                EndpointOptions server = Pair.ServerOptions(), client = Pair.ClientOptions();
                server.ServerKey = serverKey;
                server.TokenKeyFile = path;
                server.KeyLogFile = log;
                client.Secure = true;
                using (var pair = new Pair(server, client))
                {
                    var claims = new TokenClaims
                    {
                        UserId = 7, Expires = InOneMinute, ClientKey = clientPublic,
                        ServerNames = new[] { pair.ServerAddress }, ServerKeys = new[] { serverPublic },
                    };
                    Expect.Fails(ErrorCode.System, () => claims.ToTokenByFile(path + ".missing"));
                    string token = claims.ToTokenByFile(path);
                    pair.Client.Connect(null, new ConnectOptions { Token = token, IdentityKey = clientKey });
                    pair.Back = pair.WaitFor(pair.Server, EventKind.Connected).Connection;
                    Expect.Equal(7ul, pair.Server.SecurePeer(pair.Back).TokenUserId);
                }
                Expect.True(new FileInfo(log).Length > 100, "the key log contains the keys of the connection");
            }
            finally
            {
                File.Delete(path);
                File.Delete(log);
            }
        }

        [Test]
        static void an_unencrypted_connection_has_no_secure_peer()
        {
            if (IsMissingAsReported())
                return;
            using (var pair = Pair.Connected())
                Expect.True(!pair.Client.SecurePeer(pair.There).IsSecure, "the connection is not secure");
        }
    }
}
