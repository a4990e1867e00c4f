//! An embassy-net driver for the Ethernet chip LAN9118, without DMA. Names and bits are from section 5 of the LAN9118
//! datasheet.

use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Context;

use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
use embassy_sync::waitqueue::AtomicWaker;

use crate::registers::{read, write};

pub(crate) const IRQ: u16 = 13;

const BASE: usize = 0x4020_0000;
const RX_DATA: usize = BASE;
const TX_DATA: usize = BASE + 0x20;
const RX_STATUS: usize = BASE + 0x40;
const TX_STATUS: usize = BASE + 0x48;
const IRQ_CFG: usize = BASE + 0x54;
const INT_STS: usize = BASE + 0x58;
const INT_EN: usize = BASE + 0x5c;
const BYTE_TEST: usize = BASE + 0x64;
const FIFO_INT: usize = BASE + 0x68;
const RX_CFG: usize = BASE + 0x6c;
const TX_CFG: usize = BASE + 0x70;
const HW_CFG: usize = BASE + 0x74;
const RX_FIFO_INF: usize = BASE + 0x7c;
const TX_FIFO_INF: usize = BASE + 0x80;
const PMT_CTRL: usize = BASE + 0x84;
const MAC_CSR_CMD: usize = BASE + 0xa4;
const MAC_CSR_DATA: usize = BASE + 0xa8;

const MAC_CR: u32 = 1;
const ADDRH: u32 = 2;
const ADDRL: u32 = 3;
const MII_ACC: u32 = 6;
const MII_DATA: u32 = 7;

/// Registers of the PHY: status, interrupt source and interrupt mask.
const PHY_STATUS: u32 = 1;
const PHY_INTERRUPT_SOURCE: u32 = 29;
const PHY_INTERRUPT_MASK: u32 = 30;
const PHY_ADDRESS: u32 = 1;
/// The link is up.
const LINK: u32 = 1 << 2;
/// The link went down, or came up.
const LINK_CHANGES: u32 = 1 << 4 | 1 << 6;

/// "Receive status FIFO level": frames have arrived.
const RSFL: u32 = 1 << 3;
/// Interrupt of the PHY.
const PHY_INT: u32 = 1 << 18;
const BUSY: u32 = 1 << 31;

/// The maximum length of a frame without its checksum, in bytes.
const FRAME: usize = 1_514;
const WORDS: usize = FRAME.div_ceil(4) + 1;
const CHECKSUM: usize = 4;

static WAKER: AtomicWaker = AtomicWaker::new();
static LINK_CHANGED: AtomicBool = AtomicBool::new(true);

/// Masks the interrupt and wakes the network task, which unmasks the interrupt after reading all frames.
pub(crate) fn on_interrupt() {
    if read(INT_STS) & PHY_INT != 0 {
        LINK_CHANGED.store(true, Ordering::Relaxed);
    }
    write(INT_EN, 0);
    WAKER.wake();
}

/// The chip.
pub(crate) struct Lan9118 {
    frame: [u32; WORDS],
    address: [u8; 6],
    link: LinkState,
}

/// The error if there is no LAN9118.
#[derive(Clone, Copy, Debug, defmt::Format)]
pub(crate) struct NotFound;

impl Lan9118 {
    pub(crate) const fn new() -> Self {
        Self { frame: [0; WORDS], address: [0; 6], link: LinkState::Down }
    }

    pub(crate) fn init(&mut self) -> Result<(), NotFound> {
        if read(BYTE_TEST) != 0x8765_4321 {
            return Err(NotFound);
        }
        while read(PMT_CTRL) & 1 == 0 {}
        write(HW_CFG, 1);
        while read(HW_CFG) & 1 != 0 {}
        // A bit that must be set, and a transmit buffer of 5 KiB.
        write(HW_CFG, 1 << 20 | 5 << 16);
        write(FIFO_INT, 0);
        write(INT_EN, 0);
        write(INT_STS, u32::MAX);
        // Enabled, active high, push-pull.
        write(IRQ_CFG, 1 << 8 | 1 << 4 | 1);
        write(RX_CFG, 0);
        let ([a, b, c, d], [e, f, _, _]) = (mac_read(ADDRL).to_le_bytes(), mac_read(ADDRH).to_le_bytes());
        self.address = [a, b, c, d, e, f];
        // Full duplex, transmitter and receiver on.
        mac_write(MAC_CR, 1 << 20 | 1 << 3 | 1 << 2);
        write(TX_CFG, 1 << 1);
        phy_write(PHY_INTERRUPT_MASK, LINK_CHANGES);
        Ok(())
    }
}

fn mac_read(register: u32) -> u32 {
    write(MAC_CSR_CMD, BUSY | 1 << 30 | register);
    while read(MAC_CSR_CMD) & BUSY != 0 {}
    read(MAC_CSR_DATA)
}

fn mac_write(register: u32, value: u32) {
    write(MAC_CSR_DATA, value);
    write(MAC_CSR_CMD, BUSY | register);
    while read(MAC_CSR_CMD) & BUSY != 0 {}
}

fn phy_read(register: u32) -> u32 {
    mac_write(MII_ACC, PHY_ADDRESS << 11 | register << 6);
    mac_read(MII_DATA)
}

fn phy_write(register: u32, value: u32) {
    mac_write(MII_DATA, value);
    mac_write(MII_ACC, PHY_ADDRESS << 11 | register << 6 | 1 << 1);
}

fn pending_frames() -> u32 {
    read(RX_FIFO_INF) >> 16 & 0xff
}

/// Returns the first `length` bytes of the words.
fn bytes(words: &mut [u32; WORDS], length: usize) -> &mut [u8] {
    let length = length.min(size_of_val(words));
    // SAFETY: the length is within the words, any bytes are valid, and the borrow is exclusive.
    unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), length) }
}

pub(crate) struct Received<'a>(&'a mut [u32; WORDS]);
pub(crate) struct Room;

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, take: F) -> R {
        let length = (read(RX_STATUS) >> 16 & 0x3fff) as usize;
        for at in 0..length.div_ceil(4) {
            let word = read(RX_DATA);
            if let Some(place) = self.0.get_mut(at) {
                *place = word;
            }
        }
        take(bytes(self.0, length.saturating_sub(CHECKSUM)))
    }
}

impl TxToken for Room {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut words = [0; WORDS];
        let result = fill(bytes(&mut words, length));
        // The first and last segment in one.
        write(TX_DATA, 1 << 13 | 1 << 12 | length as u32);
        write(TX_DATA, length as u32);
        for word in words.iter().take(length.div_ceil(4)) {
            write(TX_DATA, *word);
        }
        while read(TX_FIFO_INF) >> 16 & 0xff != 0 {
            read(TX_STATUS);
        }
        result
    }
}

impl Driver for Lan9118 {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Room;

    fn receive(&mut self, cx: &mut Context<'_>) -> Option<(Received<'_>, Room)> {
        if pending_frames() == 0 {
            WAKER.register(cx.waker());
            write(INT_STS, RSFL);
            write(INT_EN, RSFL | PHY_INT);
            // Another frame may have arrived before the interrupt was unmasked.
            if pending_frames() == 0 {
                return None;
            }
        }
        Some((Received(&mut self.frame), Room))
    }

    fn transmit(&mut self, _cx: &mut Context<'_>) -> Option<Room> {
        Some(Room)
    }

    fn link_state(&mut self, cx: &mut Context<'_>) -> LinkState {
        WAKER.register(cx.waker());
        if LINK_CHANGED.swap(false, Ordering::Relaxed) {
            // Reading the source clears it.
            phy_read(PHY_INTERRUPT_SOURCE);
            write(INT_STS, PHY_INT);
            self.link = if phy_read(PHY_STATUS) & LINK == 0 { LinkState::Down } else { LinkState::Up };
            write(INT_EN, RSFL | PHY_INT);
        }
        self.link
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = FRAME;
        capabilities.max_burst_size = Some(1);
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(self.address)
    }
}
