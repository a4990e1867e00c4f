//! The lights and the button of a board.

pub use snowfight::wanderer::Button;

/// The health of the player.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, defmt::Format)]
pub struct Health {
    /// The remaining health; 0 without a player.
    pub now: u32,
    /// The initial health.
    pub max: u32,
}

/// The button and the lights of a board.
pub trait Panel {
    /// Returns the state of the button.
    fn button(&mut self) -> Button;

    /// Shows the health. It is called many times per second, so an implementation can let a light blink.
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
