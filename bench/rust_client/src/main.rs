//! Load the bench's small table with the `scylla` driver, as a fast Rust client would.
//!
//! `rust-client HOST PORT KEYSPACE.TABLE FILE THREADS IN_FLIGHT` prints one JSON line. THREADS 0 is
//! tokio's current-thread runtime. Every record is parsed, typed and sent as a single prepared
//! statement at LOCAL_QUORUM, as in ringhaul; the progress of the load is not recorded.

use std::error::Error;
use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use csv::{Reader, ReaderBuilder, StringRecord};
use scylla::SerializeRow;
use scylla::client::PoolSize;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use serde::Deserialize;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

type Failure = Box<dyn Error + Send + Sync>;

const COLUMNS: &str = "id, seq, temperature, humidity, sensor, taken";

/// As many as ringhaul and the replayed frames use.
const CONNECTIONS: usize = 2;

const TRIES_MAX: u32 = 5;
/// Pause after the first failure; each further one adds as much.
const PAUSE: Duration = Duration::from_millis(100);

/// Text is borrowed from the record. The fields are in the order of COLUMNS, so that no row needs a
/// lookup by name.
#[derive(Deserialize, SerializeRow)]
#[scylla(flavor = "enforce_order")]
struct Row<'a> {
    id: &'a str,
    seq: i64,
    temperature: f64,
    humidity: f64,
    sensor: &'a str,
    taken: DateTime<Utc>,
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [host, port, table, path, threads, in_flight] = arguments.as_slice() else {
        return Err("rust-client HOST PORT KEYSPACE.TABLE FILE THREADS IN_FLIGHT".into());
    };
    let runtime = match threads.parse()? {
        0 => Builder::new_current_thread().enable_all().build()?,
        count => Builder::new_multi_thread()
            .worker_threads(count)
            .enable_all()
            .build()?,
    };
    let address = format!("{host}:{port}");
    let reader = ReaderBuilder::new()
        .buffer_capacity(1 << 20)
        .from_path(path)?;
    let (rows, load_s) = runtime.block_on(load(&address, table, reader, in_flight.parse()?))?;
    println!("{{\"rows\": {rows}, \"load_s\": {load_s}}}");
    Ok(())
}

/// Rows written, and seconds from the first request to the last answer.
async fn load(
    address: &str,
    table: &str,
    reader: Reader<File>,
    in_flight: usize,
) -> Result<(u64, f64), Failure> {
    let connections = NonZeroUsize::new(CONNECTIONS).expect("a constant above 0");
    // The driver is token-aware by default.
    let session = SessionBuilder::new()
        .known_node(address)
        .pool_size(PoolSize::PerHost(connections))
        .build()
        .await?;
    let insert = format!("INSERT INTO {table} ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)");
    let mut prepared = session.prepare(insert).await?;
    prepared.set_consistency(Consistency::LocalQuorum);
    prepared.set_is_idempotent(true); // lets the driver try again on another connection
    let shared = Arc::new((session, prepared, Mutex::new(reader)));

    let started = Instant::now();
    let mut lanes = JoinSet::new();
    for _ in 0..in_flight {
        let shared = Arc::clone(&shared);
        lanes.spawn(async move { lane(&shared.0, &shared.1, &shared.2).await });
    }
    let mut rows = 0;
    while let Some(ended) = lanes.join_next().await {
        rows += ended??;
    }
    Ok((rows, started.elapsed().as_secs_f64()))
}

/// Send one request after the other; the number of lanes is the number of requests in flight.
///
/// A task for each row with a semaphore would cost one more allocation and wake-up per row; a lane
/// even reuses its record's memory for all its rows.
async fn lane(
    session: &Session,
    insert: &PreparedStatement,
    reader: &Mutex<Reader<File>>,
) -> Result<u64, Failure> {
    let mut record = StringRecord::new();
    let mut rows = 0;
    while reader
        .lock()
        .expect("no lane panicked")
        .read_record(&mut record)?
    {
        let row: Row = record.deserialize(None)?;
        let mut tries = 1;
        // The driver's policy does not retry a write timeout; a busy server has some.
        while let Err(error) = session.execute_unpaged(insert, &row).await {
            if tries == TRIES_MAX {
                return Err(error.into());
            }
            tokio::time::sleep(PAUSE * tries).await;
            tries += 1;
        }
        rows += 1;
    }
    Ok(rows)
}
