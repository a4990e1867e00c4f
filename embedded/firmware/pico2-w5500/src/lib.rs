//! The W5500-EVB-Pico2: everything that is not the program.

#![no_std]

pub mod board;
