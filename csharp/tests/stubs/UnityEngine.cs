// Stubs of the engine's API that the transports use, to compile and test them without the engine.

using System;
using System.Collections.Generic;
using System.Diagnostics;

namespace UnityEngine
{
    public class MonoBehaviour
    {
        public bool enabled = true;
    }

    public enum RuntimePlatform { LinuxPlayer = 13, WebGLPlayer = 17 }

    public static class Application
    {
        public static RuntimePlatform platform = RuntimePlatform.LinuxPlayer;
    }

    public static class Time
    {
        static readonly Stopwatch Clock = Stopwatch.StartNew();

        public static float realtimeSinceStartup => (float)Clock.Elapsed.TotalSeconds;
    }

    public static class Debug
    {
        /// <summary>The logged lines, for tests.</summary>
        public static readonly List<string> Lines = new List<string>();

        public static void Log(object message) => Lines.Add(message.ToString());
        public static void LogWarning(object message) => Lines.Add("warning: " + message);
        public static void LogError(object message) => Lines.Add("error: " + message);
    }

    public sealed class AddComponentMenu : Attribute
    {
        public AddComponentMenu(string menuName) { }
    }

    public sealed class DisallowMultipleComponent : Attribute { }

    public sealed class TooltipAttribute : Attribute
    {
        public TooltipAttribute(string tooltip) { }
    }
}
