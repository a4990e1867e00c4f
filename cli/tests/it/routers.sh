# Two homes, each behind a router, and an outside machine that both can reach, each in its own network namespace. The
# arguments are the nft rules that the routers apply to the addresses of outgoing datagrams.
set -e
# The test prints the errors.
exec 2>&1
PATH=$PATH:/usr/sbin:/sbin
mount -t tmpfs tmpfs /run
echo 1 >/proc/sys/net/ipv4/ip_forward
ip link set lo up
ip address add 192.0.2.1/32 dev lo
home=0
for translation in "$@"; do
  home=$((home + 1))
  ip netns add router$home
  ip netns add home$home
  ip link add router$home type veth peer name outside netns router$home
  ip link add inside netns router$home type veth peer name router netns home$home
  ip address add 198.51.100.$((home * 4 + 1))/30 dev router$home
  ip link set router$home up
  ip -n router$home address add 198.51.100.$((home * 4 + 2))/30 dev outside
  ip -n router$home address add 10.0.$home.1/24 dev inside
  ip -n router$home link set outside up
  ip -n router$home link set inside up
  ip -n router$home route add default via 198.51.100.$((home * 4 + 1))
  ip -n home$home link set lo up
  ip -n home$home address add 10.0.$home.2/24 dev router
  ip -n home$home link set router up
  ip -n home$home route add default via 10.0.$home.1
  ip netns exec router$home sh -c "echo 1 >/proc/sys/net/ipv4/ip_forward"
  # Routers drop datagrams that nothing inside has requested. A router that answered one would occupy the port that the
  # other home is about to need.
  ip netns exec router$home nft -f - <<RULES
table ip router {
  chain leaving { type nat hook postrouting priority srcnat; oifname outside $translation; }
  chain arriving { type filter hook input priority filter; iifname outside ct state new drop; }
}
RULES
done
echo ready
exec cat
