//! The server of the chart index: its command line, and the composition of the services.

mod arguments;
mod composition;
mod health;
mod healthcheck;
mod open_files;

use std::io::{self, Write};
use std::process::ExitCode;

use chart_index_telemetry::{Log, shutdown_signal};
use clap::Parser;

use crate::arguments::{Arguments, Command, ServeArguments};

/// Responses are made of many small texts: with glibc's allocator a list takes a seventh more instructions.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Serve(settings) => {
            let log = Log::start(&settings.logging);
            let served = serve(&settings).await;
            log.finish(served.as_ref().err().map(last_words));
            exit_code(&served)
        }
        Command::Healthcheck(settings) => {
            let healthy = healthcheck::run(&settings);
            if let Err(error) = &healthy {
                let _ = writeln!(io::stderr(), "{}", last_words(error));
            }
            exit_code(&healthy)
        }
    }
}

async fn serve(settings: &ServeArguments) -> anyhow::Result<()> {
    composition::run(settings, shutdown_signal()?).await
}

/// What a program that failed says at its end, for the caller.
fn last_words(error: &anyhow::Error) -> String {
    format!("error: {error:#}")
}

const fn exit_code(result: &anyhow::Result<()>) -> ExitCode {
    if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
