// A stub of the base class of transports for Netcode for GameObjects, without its manager. Tests make the calls that
// the manager makes.

using System;

namespace Unity.Netcode
{
    public class NetworkManager { }

    public enum NetworkEvent { Data, Connect, Disconnect, TransportFailure, Nothing }

    public enum NetworkDelivery { Unreliable, UnreliableSequenced, Reliable, ReliableSequenced, ReliableFragmentedSequenced }

    public abstract class NetworkTransport : UnityEngine.MonoBehaviour
    {
        public abstract ulong ServerClientId { get; }
        public virtual bool IsSupported => true;
        public abstract void Send(ulong clientId, ArraySegment<byte> payload, NetworkDelivery networkDelivery);
        public abstract NetworkEvent PollEvent(out ulong clientId, out ArraySegment<byte> payload, out float receiveTime);
        public abstract bool StartClient();
        public abstract bool StartServer();
        public abstract void DisconnectRemoteClient(ulong clientId);
        public abstract void DisconnectLocalClient();
        public abstract ulong GetCurrentRtt(ulong clientId);
        public abstract void Shutdown();
        public abstract void Initialize(NetworkManager networkManager = null);
#if !RAKWIRE_NETCODE_1
        protected virtual void OnEarlyUpdate() { }
        protected virtual void OnPostLateUpdate() { }

        /// <summary>Ends a frame, as the manager does.</summary>
        public void EndFrame() => OnPostLateUpdate();
#else
        Action lateUpdate;

        /// <summary>Ends a frame. Unity calls this method by its name.</summary>
        public void EndFrame()
        {
            if (lateUpdate == null)
                lateUpdate = (Action)Delegate.CreateDelegate(typeof(Action), this, "LateUpdate");
            lateUpdate();
        }
#endif
    }
}
