# A client, a router and a server, each in its own network namespace. The client has 10.71.1.2 and fd71:1::2, the server
# 10.71.2.2 and fd71:2::2.
set -e
# The test prints the errors.
exec 2>&1
PATH=$PATH:/usr/sbin:/sbin
mount -t tmpfs tmpfs /run
ip link set lo up
echo 0 >/proc/sys/net/ipv6/conf/all/accept_dad
echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad
number=0
for machine in client server; do
  number=$((number + 1))
  ip netns add $machine
  ip link add to_$machine type veth peer name router netns $machine
  ip address add 10.71.$number.1/24 dev to_$machine
  ip address add fd71:$number::1/64 dev to_$machine nodad
  ip link set to_$machine up
  ip -n $machine link set lo up
  ip -n $machine address add 10.71.$number.2/24 dev router
  ip -n $machine address add fd71:$number::2/64 dev router nodad
  ip -n $machine link set router up
  ip -n $machine route add default via 10.71.$number.1
  ip -n $machine route add default via fd71:$number::1
done
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
echo ready
exec cat
