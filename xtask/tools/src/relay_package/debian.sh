# Creates a bare Debian, boots it with systemd in its own network, and follows the guide for operators there. The host
# name of the guide resolves to this machine. A certificate from a file replaces that of ACME, which needs the internet.
# A server that echoes datagrams replaces the game.
set -eu
package=$1
root=$2
config=$3
steps=$4
socket=$5

# Time limit of the guide in seconds, apart from reading.
guide_limit=600

step() {
    echo "--> $* ($(($(date +%s) - started)) s)"
}
# Exits if a command succeeds. `! command` would not end the script under `set -e`.
fails() {
    if "$@"; then
        echo "did not fail: $*"
        exit 1
    fi
}
started=$(date +%s)
machine=

clean_up() {
    if [ -n "$machine" ]; then
        kill -TERM "$machine" 2>/dev/null || true
        wait "$machine" || true
    fi
    rm -rf --one-file-system "$root"
}
trap clean_up EXIT

step "a bare Debian"
rm -rf --one-file-system "$root"
debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,sudo,curl,ca-certificates,openssl,socat bookworm "$root" > "$root.log" 2>&1
cp "$package" "$root/srv/rakwire-relay.deb"
cp "$config" "$root/srv/relay.toml"
cp "$steps" "$root/srv/steps.sh"
cp "$socket" "$root/srv/socket.sh"
cat > "$root/srv/player.sh" << 'END'
# Plays a page with a token. Checks that the echo of its datagram, a RakNet request, comes back.
answer=$(mktemp)
token=$(rakwire-relay token --key /srv/token.key --target game)
play() {
    printf 'GET /ws?target=game&token=%s HTTP/1.1\r\nHost: play.example.org\r\nOrigin: https://play.example.org\r\n' "$token"
    printf 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
    printf 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
    until grep --quiet --text '^HTTP/1.1 101' "$answer"; do sleep 0.1; done
    # A binary message of 37 bytes with a zero mask: the id, the magic, the protocol version and padding.
    printf '\202\245\0\0\0\0\5\0\377\377\0\376\376\376\376\375\375\375\375\0224Vx\13here comes a player'
    until grep --quiet --text 'here comes a player' "$answer"; do sleep 0.1; done
}
play | openssl s_client -quiet -no_ign_eof -verify_return_error -verify_hostname play.example.org \
    -connect play.example.org:443 -servername play.example.org > "$answer" 2> /dev/null
echo "the game server has answered a player with a token"
END
echo relay > "$root/etc/hostname"
echo "127.0.0.1 localhost relay play.example.org" > "$root/etc/hosts"
# Downloads the packages now, because the booted Debian has no internet access.
chroot "$root" apt-get install --yes --download-only /srv/rakwire-relay.deb >> "$root.log" 2>&1

step "boot"
boot_started=$(date +%s)
systemd-nspawn --quiet --directory="$root" --boot --private-network --register=no --keep-unit --console=read-only \
    > "$root.boot.log" 2>&1 < /dev/null &
machine=$!
inside() {
    nsenter --target "$(pgrep --parent "$machine" | head -n 1)" --mount --uts --ipc --net --pid --cgroup -- \
        env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"
}
until inside systemctl is-system-running --wait 2>/dev/null | grep --quiet running; do
    [ $(($(date +%s) - boot_started)) -lt 300 ]
    sleep 1
done

play() {
    inside timeout 60 sh -eu /srv/player.sh
}

guide_started=$(date +%s)
step "install"
inside apt-get install --yes /srv/rakwire-relay.deb >> "$root.log" 2>&1
inside sh -eu -c '
    cd /srv
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=play.example.org \
        -addext subjectAltName=DNS:play.example.org -keyout privkey.pem -out fullchain.pem 2>/dev/null
    install -o root -g rakwire-relay -m 640 privkey.pem fullchain.pem relay.toml /etc/rakwire-relay/
    cp fullchain.pem /usr/local/share/ca-certificates/relay.crt
    update-ca-certificates > /dev/null'

step "the guide"
inside sh -eu -c 'cd /srv && sh -eux steps.sh' > "$root.steps.log" 2>&1 || { cat "$root.steps.log"; exit 1; }
grep --quiet '^ok$' "$root.steps.log"
grep --quiet 'this relay does not accept pages of this origin' "$root.steps.log"
inside journalctl --unit rakwire-relay --no-pager --quiet | tail -n 3

step "a player"
inside systemd-run --quiet --unit game-server socat -T 5 UDP4-RECVFROM:19132,bind=127.0.0.1,fork EXEC:cat
# The player sends its datagram only once, so the port (19132 is 4ABC) must be open before.
inside timeout 60 sh -c 'until grep --quiet ":4ABC " /proc/net/udp; do sleep 0.1; done'
play
seconds=$(($(date +%s) - guide_started))
echo "from the package to a player in $seconds s"
[ "$seconds" -le "$guide_limit" ] || { echo "the guide takes longer than $guide_limit s"; exit 1; }

step "the socket"
inside sh -eux /srv/socket.sh
inside systemctl is-active rakwire-relay.socket rakwire-relay.service
play
inside systemctl stop rakwire-relay.service
fails inside systemctl is-active rakwire-relay.service
# The connection starts the relay by socket activation, and waits for it.
play
inside systemctl is-active rakwire-relay.service

step "reload, update and removal"
inside systemctl reload rakwire-relay
inside sh -c 'echo "lisen = 1" >> /etc/rakwire-relay/relay.toml'
# A configuration error makes the reload fail, and the relay continues.
fails inside systemctl reload rakwire-relay 2> /dev/null
inside systemctl is-active rakwire-relay
inside sed -i '$d' /etc/rakwire-relay/relay.toml
inside systemctl reload rakwire-relay
inside apt-get install --yes --reinstall /srv/rakwire-relay.deb >> "$root.log" 2>&1
inside systemctl is-active rakwire-relay
inside apt-get purge --yes rakwire-relay >> "$root.log" 2>&1
fails inside systemctl is-active rakwire-relay.service
fails inside systemctl is-active rakwire-relay.socket
step "done"
