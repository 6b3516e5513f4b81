//! The program `chart-index`.

mod arguments;
mod check;
mod composition;
mod health;
mod healthcheck;
mod limits;
mod open_file_limit;
mod start_checks;

use std::process::ExitCode;
use std::thread;

use anyhow::Context;
use chart_index_http::WorkerThreads;
use chart_index_telemetry::{Telemetry, print, shutdown_signal};
use tokio::runtime::Runtime;
use tracing::Level;

use crate::arguments::{Arguments, Command, ServeArguments};

/// Responses are built from many small strings: with the allocator of glibc a list takes a seventh more
/// instructions.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = chart_index_cli::parse(Arguments::check);
    let result = match arguments.unwrap_or_else(|error| chart_index_telemetry::exit(&error)).command {
        Command::Serve(arguments) => return serve(&arguments),
        Command::Check(arguments) => return check::run(&arguments),
        Command::Healthcheck(arguments) => healthcheck::run(&arguments),
    };
    if let Err(error) = &result {
        print(Level::ERROR, error_message(error));
    }
    exit_code(&result)
}

/// Serves until a signal, with the telemetry around it: its exporters must not run in the async runtime.
fn serve(arguments: &ServeArguments) -> ExitCode {
    let started = Telemetry::start("chart-index", env!("CARGO_PKG_VERSION"), &arguments.log, &arguments.otlp);
    let telemetry = match started {
        Ok(telemetry) => telemetry,
        Err(error) => {
            print(Level::ERROR, error_message(&error.into()));
            return ExitCode::FAILURE;
        }
    };
    let result = run(arguments, &telemetry);
    telemetry.finish(result.as_ref().err().map(error_message));
    exit_code(&result)
}

fn run(arguments: &ServeArguments, telemetry: &Telemetry) -> anyhow::Result<()> {
    let runtime = Runtime::new().context("cannot start the async runtime")?;
    let number = arguments.worker_threads.map_or_else(thread::available_parallelism, Ok);
    let threads = WorkerThreads::start(number.context("cannot find the number of cores")?)
        .context("cannot start a worker thread")?;
    telemetry.observe_runtime("background", [runtime.handle()]);
    telemetry.observe_runtime("requests", threads.runtimes());
    let result = runtime
        .block_on(async { composition::run(arguments, telemetry, &threads, shutdown_signal()?).await });
    // Without waiting for blocking tasks, such as the resolution of a host name.
    runtime.shutdown_background();
    result
}

/// The error with its causes, on one line.
fn error_message(error: &anyhow::Error) -> String {
    format!("error: {error:#}")
}

const fn exit_code(result: &anyhow::Result<()>) -> ExitCode {
    if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
