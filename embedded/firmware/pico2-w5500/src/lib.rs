//! The W5500-EVB-Pico2: board support.

#![no_std]

pub mod board;
