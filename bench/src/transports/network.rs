//! Two machines in one: network namespaces, each with a device connected to the other by a path.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};
use nix::sched::{CloneFlags, unshare};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::path::End;

/// The addresses of the page's machine and of the relay's.
pub(super) const NEAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub(super) const FAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// The MTU of Ethernet.
const MTU: u16 = 1_500;
/// The congestion control of TCP. Most systems use CUBIC, which behaves like Reno at the losses and round trips of this
/// path (RFC 9438 section 4.3), and is not available in every namespace.
const CONGESTION_CONTROL: &str = "reno";
const DEVICE: &str = "path";

/// The end of a path on one machine.
pub(super) struct Device(SyncDevice);

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl End for Device {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buffer)
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.0.send(datagram)
    }
}

/// Starts programs on a separate machine, which exists as long as they run. It has this address, and loopback.
pub(super) fn on_machine<R: Send>(
    address: Ipv4Addr,
    start: impl FnOnce() -> Result<R> + Send,
) -> Result<(Device, R)> {
    std::thread::scope(|scope| {
        let started = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)
                .context("network namespaces need root, as `unshare --map-root-user` gives it")?;
            let device = DeviceBuilder::new().name(DEVICE).mtu(MTU).build_sync();
            let device = device.context("TUN devices are not available")?;
            device.set_nonblocking(true)?;
            std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", CONGESTION_CONTROL)?;
            ip(&["address", "add", &format!("{address}/24"), "dev", DEVICE])?;
            ip(&["link", "set", DEVICE, "up"])?;
            ip(&["link", "set", "lo", "up"])?;
            Ok((Device(device), start()?))
        });
        started.join().map_err(|_| anyhow!("a machine could not be made"))?
    })
}

fn ip(arguments: &[&str]) -> Result<()> {
    let status = Command::new("ip").args(arguments).status().context("ip of iproute2 cannot be started")?;
    ensure!(status.success(), "ip {} failed", arguments.join(" "));
    Ok(())
}
