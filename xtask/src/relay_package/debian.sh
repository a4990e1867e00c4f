# Makes a bare Debian, boots it with systemd in a network of its own, and does there what the guide tells an operator to do.
# The name of the guide leads to it, and a certificate from a file stands for the one that only the internet gives.
set -eu
package=$1
root=$2
config=$3
steps=$4

step() {
    echo "--> $* ($(($(date +%s) - started)) s)"
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
debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,sudo,curl,ca-certificates,openssl bookworm "$root" > "$root.log" 2>&1
cp "$package" "$root/srv/rakwire-relay.deb"
cp "$config" "$root/srv/relay.toml"
cp "$steps" "$root/srv/steps.sh"
echo relay > "$root/etc/hostname"
echo "127.0.0.1 localhost relay play.example.org" > "$root/etc/hosts"
# It has no way to the internet once it is booted.
chroot "$root" apt-get install --yes --download-only /srv/rakwire-relay.deb >> "$root.log" 2>&1

step "boot"
systemd-nspawn --quiet --directory="$root" --boot --private-network --register=no --keep-unit --console=read-only \
    > "$root.boot.log" 2>&1 < /dev/null &
machine=$!
inside() {
    nsenter --target "$(pgrep --parent "$machine" | head -n 1)" --mount --uts --ipc --net --pid --cgroup -- \
        env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"
}
until inside systemctl is-system-running --wait 2>/dev/null | grep --quiet running; do
    [ $(($(date +%s) - started)) -lt 300 ]
    sleep 1
done

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
grep --quiet '^403$' "$root.steps.log"
inside journalctl --unit rakwire-relay --no-pager --quiet | tail -n 3

step "reload, update and removal"
inside systemctl reload rakwire-relay
inside sh -c 'echo "lisen = 1" >> /etc/rakwire-relay/relay.toml'
# A mistake makes the reload fail, and the relay goes on.
! inside systemctl reload rakwire-relay 2>/dev/null
inside systemctl is-active rakwire-relay
inside sed -i '$d' /etc/rakwire-relay/relay.toml
inside systemctl reload rakwire-relay
inside apt-get install --yes --reinstall /srv/rakwire-relay.deb >> "$root.log" 2>&1
inside systemctl is-active rakwire-relay
inside apt-get purge --yes rakwire-relay >> "$root.log" 2>&1
! inside systemctl is-active rakwire-relay
step "done"
