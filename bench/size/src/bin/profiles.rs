//! Symbols with the sizes of the memory of the profiles.

#![no_std]
#![no_main]

use rakwire_embassy::game_protocol::profiles::{Player as GamePlayer, Sensor as GameSensor};
use rakwire_embassy::raknet::profiles::{Bulk, HostOfFour, Player, Sensor};
use rakwire_size as _;

macro_rules! sizes {
    ($($resources:ident, $state:ident: $profile:ident;)*) => {
        $(
            /// Has the size of the protocol's memory.
            #[unsafe(no_mangle)]
            #[used]
            #[allow(non_upper_case_globals, reason = "the name is that of the table")]
            pub static mut $resources: [u8; $profile::RESOURCES_BYTES] = [0; $profile::RESOURCES_BYTES];
            /// Has the size of the memory of the protocol, the driver and its socket.
            #[unsafe(no_mangle)]
            #[used]
            #[allow(non_upper_case_globals, reason = "the name is that of the table")]
            pub static mut $state: [u8; size_of::<$profile<'static>>()] = [0; size_of::<$profile<'static>>()];
        )*
    };
}

sizes! {
    resources_sensor, state_sensor: Sensor;
    resources_player, state_player: Player;
    resources_host_of_four, state_host_of_four: HostOfFour;
    resources_bulk, state_bulk: Bulk;
    resources_game_sensor, state_game_sensor: GameSensor;
    resources_game_player, state_game_player: GamePlayer;
}

/// The entry point.
#[unsafe(no_mangle)]
pub extern "C" fn start() -> ! {
    loop {
        core::hint::spin_loop();
    }
}
