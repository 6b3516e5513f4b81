//! The program `chart-index`.

mod arguments;
mod composition;
mod health;
mod healthcheck;
mod open_file_limit;

use std::io::{self, Write};
use std::process::ExitCode;

use chart_index_telemetry::{Log, shutdown_signal};
use clap::Parser;

use crate::arguments::{Arguments, Command, ServeArguments};

/// Responses are built from many small strings: with the allocator of glibc a list takes a seventh more instructions.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Serve(arguments) => {
            let log = Log::start(&arguments.log);
            let result = serve(&arguments).await;
            log.finish(result.as_ref().err().map(error_message));
            exit_code(&result)
        }
        Command::Healthcheck(arguments) => {
            let result = healthcheck::run(&arguments);
            if let Err(error) = &result {
                let _ = writeln!(io::stderr(), "{}", error_message(error));
            }
            exit_code(&result)
        }
    }
}

async fn serve(arguments: &ServeArguments) -> anyhow::Result<()> {
    composition::run(arguments, shutdown_signal()?).await
}

/// The error with its causes, on one line.
fn error_message(error: &anyhow::Error) -> String {
    format!("error: {error:#}")
}

const fn exit_code(result: &anyhow::Result<()>) -> ExitCode {
    if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
