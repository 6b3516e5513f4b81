//! The server of the chart index: its command line, and the composition of the services.

mod arguments;
mod composition;
mod health;
mod healthcheck;
mod logging;
mod signals;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};

/// Answers are made of many small texts: with glibc's allocator a list takes a seventh more instructions.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.command {
        Command::Serve(settings) => {
            logging::start(&settings.logging);
            composition::run(&settings, signals::shutdown()?).await
        }
        Command::Healthcheck(settings) => healthcheck::run(&settings),
    }
}

#[expect(clippy::print_stderr, reason = "the last words of a program that failed, for whoever started it")]
fn report(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}
