//! The Nucleo-H743ZI2: board support.

#![no_std]

pub mod board;
