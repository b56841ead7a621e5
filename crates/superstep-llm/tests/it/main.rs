//! The behaviour of models, scripted, recorded and real.

mod cassettes;
mod fitting;
mod kit;
mod names;
mod real;
mod retries;
mod scripts;
mod secrets;
mod servers;
mod structured;
