//! Simulates two machines with network namespaces. Each has a TUN device, and a path connects the two devices.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};
use nix::sched::{CloneFlags, unshare};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::path::End;

/// The address of the machine with the page.
pub(super) const NEAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// The address of the machine with the relay.
pub(super) const FAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// The MTU of Ethernet.
const MTU: u16 = 1_500;
/// The congestion control of TCP. Most systems use CUBIC, which is not available in every namespace. With the losses
/// and round-trip times of this path it behaves like Reno (RFC 9438 section 4.3).
const CONGESTION_CONTROL: &str = "reno";
const DEVICE: &str = "path";

/// The TUN device of a simulated machine. The device is one end of the path.
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

/// Starts programs on a new machine with the address `address` and a loopback interface.
///
/// The machine exists until its programs exit and the device is dropped.
pub(super) fn on_machine<R: Send>(
    address: Ipv4Addr,
    start: impl FnOnce() -> Result<R> + Send,
) -> Result<(Device, R)> {
    std::thread::scope(|scope| {
        let started = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)
                .context("network namespaces need root: run the command in `unshare --map-root-user`")?;
            let device = DeviceBuilder::new().name(DEVICE).mtu(MTU).build_sync();
            let device = device.context("a TUN device cannot be created")?;
            device.set_nonblocking(true)?;
            std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", CONGESTION_CONTROL)?;
            ip(&["address", "add", &format!("{address}/24"), "dev", DEVICE])?;
            ip(&["link", "set", DEVICE, "up"])?;
            ip(&["link", "set", "lo", "up"])?;
            Ok((Device(device), start()?))
        });
        started.join().map_err(|_| anyhow!("the thread that sets up a network namespace panicked"))?
    })
}

fn ip(arguments: &[&str]) -> Result<()> {
    let status =
        Command::new("ip").args(arguments).status().context("`ip` cannot be started: install iproute2")?;
    ensure!(status.success(), "ip {} failed", arguments.join(" "));
    Ok(())
}
