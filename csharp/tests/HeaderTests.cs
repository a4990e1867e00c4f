using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Text.RegularExpressions;

namespace Rakwire.Tests
{
    /// <summary>Compares Rakwire.cs with rakwire.h. RAKWIRE_HEADER is the path of the header; RAKWIRE_LAYOUT is the
    /// path of a list of its struct sizes and offsets.</summary>
    static class HeaderTests
    {
        static readonly Dictionary<string, Type> Structs = new Dictionary<string, Type>
        {
            { "options", typeof(NativeOptions) }, { "address", typeof(Address) }, { "event", typeof(NativeEvent) },
            { "connect_options", typeof(NativeConnectOptions) }, { "connection_info", typeof(ConnectionInfo) },
            { "stats", typeof(EndpointStats) }, { "connection_stats", typeof(ConnectionStats) },
            { "token_claims", typeof(NativeTokenClaims) }, { "secure_peer", typeof(NativeSecurePeer) },
        };

        static readonly KeyValuePair<string, Type>[] Groups =
        {
            Group("ERROR_", typeof(ErrorCode)), Group("PRIORITY_", typeof(Priority)), Group("EVENT_", typeof(EventKind)),
            Group("FAILURE_", typeof(Failure)), Group("DISCONNECT_", typeof(DisconnectReason)), Group("REFUSED_", typeof(Refusal)),
            Group("SIDE_", typeof(Side)), Group("STATE_", typeof(ConnectionState)), Group("OUTCOME_", typeof(Outcome)),
            Group("TRUST_", typeof(Trust)), Group("FEATURE_", typeof(Features)), Group("REASON_", typeof(Failure)),
            Group("COOKIES_", typeof(Cookies)), Group("CONGESTION_", typeof(Congestion)),
            Group("OK", typeof(ErrorCode)), Group("FOREVER", typeof(Endpoint)), Group("", typeof(Reliability)),
        };

        static KeyValuePair<string, Type> Group(string prefix, Type type) => new KeyValuePair<string, Type>(prefix, type);

        static string Read(string variable) => File.ReadAllText(Environment.GetEnvironmentVariable(variable)
            ?? throw new Exception("set " + variable + ", as csharp/check does"));

        static string Pascal(string name) =>
            string.Concat(name.Split('_').Where(word => word != "").Select(word => char.ToUpper(word[0]) + word.Substring(1).ToLower()));

        static string Snake(string name) => Regex.Replace(name, "(?<=.)([A-Z])", "_$1").ToLower();

        [Test]
        static void every_constant_has_the_value_from_the_header()
        {
            MatchCollection constants = Regex.Matches(Read("RAKWIRE_HEADER"), @"^#define RAKWIRE_(\w+) (-?\d+)\r?$", RegexOptions.Multiline);
            Expect.True(constants.Count > 90, "more than 90 constants were found in the header");
            foreach (Match constant in constants)
            {
                string name = constant.Groups[1].Value;
                KeyValuePair<string, Type> group = Groups.First(one => name.StartsWith(one.Key, StringComparison.Ordinal));
                string own = Pascal(name == group.Key ? name : name.Substring(group.Key.Length));
                FieldInfo field = group.Value.GetField(own);
                Expect.True(field != null && field.IsLiteral, name + " is in " + group.Value.Name);
                Expect.Equal(constant.Groups[2].Value, Convert.ToInt64(field.GetRawConstantValue()).ToString());
            }
        }

        [Test]
        static void every_function_of_the_header_is_bound()
        {
            string[] inHeader = Regex.Matches(Read("RAKWIRE_HEADER"), @"^[a-z][\w \*]*?(rakwire_\w+)\(", RegexOptions.Multiline).Cast<Match>()
                .Select(match => match.Groups[1].Value).ToArray();
            string[] here = typeof(Native).GetMethods(BindingFlags.Static | BindingFlags.NonPublic)
                .Select(method => method.Name).Where(name => name.StartsWith("rakwire_", StringComparison.Ordinal))
                .ToArray();
            Expect.True(inHeader.Length > 40, "more than 40 functions were found in the header");
            Expect.Equal("", string.Join(" ", inHeader.Except(here)));
            Expect.Equal("", string.Join(" ", here.Except(inHeader)));
        }

        [Test]
        static void every_struct_has_the_layout_of_c()
        {
            string[] lines = Read("RAKWIRE_LAYOUT").Split(new[] { '\n' }, StringSplitOptions.RemoveEmptyEntries);
            int fields = 0;
            foreach (var byStruct in lines.Select(line => line.Split(' ')).GroupBy(words => words[0]))
            {
                Expect.True(Structs.ContainsKey(byStruct.Key), "the struct " + byStruct.Key + " is bound");
                Type type = Structs[byStruct.Key];
                Dictionary<string, FieldInfo> own = type.GetFields(BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic)
                    .ToDictionary(field => Snake(field.Name));
                foreach (string[] words in byStruct)
                    if (words[1] == "sizeof")
                        Expect.Equal(words[2], Marshal.SizeOf(type).ToString());
                    else
                    {
                        Expect.True(own.ContainsKey(words[1]), byStruct.Key + "." + words[1] + " is bound");
                        Expect.Equal(byStruct.Key + "." + words[1] + " " + words[2],
                            byStruct.Key + "." + words[1] + " " + Marshal.OffsetOf(type, own[words[1]].Name));
                        fields++;
                    }
                Expect.Equal(byStruct.Count() - 1, own.Count);
            }
            Expect.True(fields > 100 && lines.Length - fields == Structs.Count, "all structs and fields are compared");
        }

        static object Number(Type type, int value) =>
            type == typeof(bool) ? true : type.IsEnum ? Enum.ToObject(type, 1) : Convert.ChangeType(value, type);

        /// <summary>Sets each numeric option, checks the native field of the same name, and returns the number of
        /// options.</summary>
        static int EachNumberReachesItsField(object options)
        {
            FieldInfo raw = options.GetType().GetField("raw", BindingFlags.Instance | BindingFlags.NonPublic);
            int count = 0;
            foreach (PropertyInfo property in options.GetType().GetProperties().Where(one => one.PropertyType.IsValueType))
            {
                FieldInfo field = raw.FieldType.GetField(property.Name, BindingFlags.Instance | BindingFlags.NonPublic);
                Expect.True(field != null, property.Name + " has a field");
                object value = Number(property.PropertyType, 100 + count);
                property.SetValue(options, value);
                object found = field.GetValue(raw.GetValue(options));
                Expect.Equal(property.Name + " " + Convert.ToUInt64(value), property.Name + " " + Convert.ToUInt64(found));
                Expect.Equal(value, property.GetValue(options));
                count++;
            }
            return count;
        }

        [Test]
        static void every_option_sets_the_native_field_of_the_same_name()
        {
            Expect.True(EachNumberReachesItsField(new EndpointOptions()) > 25, "more than 25 endpoint options were checked");
            Expect.True(EachNumberReachesItsField(new ConnectOptions()) > 5, "more than 5 connect options were checked");
        }
    }
}
