//! What a board shows of its player, and how somebody plays with it.

pub use snowfight::wanderer::Button;

/// How the player is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, defmt::Format)]
pub struct Health {
    /// How often it can still be hit; 0 without a player.
    pub now: u32,
    /// The same when it came.
    pub whole: u32,
}

/// The button and the lights of a board.
pub trait Panel {
    /// How the button is now.
    fn button(&mut self) -> Button;

    /// Shows how the player is. It is called many times a second, so that a light may blink.
    fn show(&mut self, health: Health);
}

/// A board without button and lights.
#[derive(Clone, Copy, Debug)]
pub struct Blank;

impl Panel for Blank {
    fn button(&mut self) -> Button {
        Button::Up
    }

    fn show(&mut self, _health: Health) {}
}
