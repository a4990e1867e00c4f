//! The Nucleo-H743ZI2: everything that is not the program.

#![no_std]

pub mod board;
