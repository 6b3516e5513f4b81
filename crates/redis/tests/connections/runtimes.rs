//! Which connection a command uses.

use chart_index_redis::RedisConnection;
use chart_index_redis::testing::RedisServer;
use redis::cmd;
use tokio::runtime::{Builder, Runtime};

#[test]
fn commands_use_the_connection_of_their_runtime() {
    let server = RedisServer::start(&[]);
    let runtimes =
        [(); 3].map(|()| Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());
    let [first, second, _] = runtimes.each_ref().map(|runtime| runtime.handle().clone());
    let connection = RedisConnection::connect_on("main", &server.patient_config(), &[first, second]).unwrap();
    let id_on = |runtime: &Runtime| {
        let id = async { connection.run(cmd("CLIENT").arg("ID"), connection.deadline()).await };
        runtime.block_on(id).unwrap()
    };
    let [first, second, third] = runtimes.each_ref().map(id_on);
    assert_ne!(first, second);
    assert_eq!(third, first, "one without a connection uses that of the first");
}
