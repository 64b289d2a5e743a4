//! A server that acknowledges writes at a bounded speed, with hardly any CPU.
//!
//! `bounded-server HOST PORT ROWS_PER_S ROWS_PER_S_OF_A_CONNECTION` (0: unbounded) listens on a port
//! of 127.0.0.1 and prints it. EXECUTE and BATCH of native protocol v4 are answered here, with VOID,
//! when the server and the connection have had the time for their rows. Nothing is written. All other
//! requests (log-in, PREPARE, system tables) go to the node at HOST:PORT, and so does all that is not
//! v4. When its standard input ends, the server prints how many rows it has acknowledged.

use std::collections::VecDeque;
use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const VERSION: u8 = 0x04;
const EXECUTE: u8 = 0x0A;
const BATCH: u8 = 0x0D;
const HEADER_BYTES: usize = 9;
const BUFFER_BYTES: usize = 256 * 1024;
const STACK_BYTES: usize = 128 * 1024;

/// Does one row after the other, each in the same time.
struct Clerk {
    free_at: Mutex<Instant>,
    per_row: Duration,
}

impl Clerk {
    fn new(rows_per_s: f64) -> Clerk {
        let seconds = if rows_per_s > 0.0 {
            1.0 / rows_per_s
        } else {
            0.0
        };
        Clerk {
            free_at: Mutex::new(Instant::now()),
            per_row: Duration::from_secs_f64(seconds),
        }
    }

    /// When these rows are done, if they come now.
    fn done_at(&self, now: Instant, rows: u32) -> Instant {
        let mut free_at = self.free_at.lock().unwrap();
        *free_at = now.max(*free_at) + self.per_row * rows;
        *free_at
    }
}

#[derive(Default)]
struct Answers {
    waiting: VecDeque<(Instant, [u8; 2], u32)>,
    ended: bool,
}

struct Server {
    target: String,
    clerk: Clerk,
    rows_per_s_of_a_connection: f64,
    acknowledged: AtomicU64,
}

struct Connection {
    server: Arc<Server>,
    clerk: Clerk,
    answers: Mutex<Answers>,
    changed: Condvar,
    /// To the client; a whole frame at a time.
    out: Mutex<TcpStream>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.len() != 4 {
        eprintln!("usage: bounded-server HOST PORT ROWS_PER_S ROWS_PER_S_OF_A_CONNECTION");
        std::process::exit(2);
    }
    let rate = |text: &str| text.parse::<f64>().expect("rows per second");
    let server = Arc::new(Server {
        target: format!("{}:{}", arguments[0], arguments[1]),
        clerk: Clerk::new(rate(&arguments[2])),
        rows_per_s_of_a_connection: rate(&arguments[3]),
        acknowledged: AtomicU64::new(0),
    });
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    println!("{}", listener.local_addr().expect("its address").port());
    let accepting = Arc::clone(&server);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = Arc::clone(&accepting);
            start(move || {
                let _ = serve(client, server);
            });
        }
    });
    let mut rest = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut rest);
    println!("{}", server.acknowledged.load(Ordering::Relaxed));
}

/// Forward both ways until both have ended; answer writes here.
fn serve(client: TcpStream, server: Arc<Server>) -> std::io::Result<()> {
    let node = TcpStream::connect(&server.target)?;
    client.set_nodelay(true)?;
    node.set_nodelay(true)?;
    let connection = Arc::new(Connection {
        clerk: Clerk::new(server.rows_per_s_of_a_connection),
        server,
        answers: Mutex::new(Answers::default()),
        changed: Condvar::new(),
        out: Mutex::new(client.try_clone()?),
    });
    let (answering, returning) = (Arc::clone(&connection), Arc::clone(&connection));
    let from_node = node.try_clone()?;
    start(move || answer(&answering));
    start(move || {
        let _ = give_back(from_node, &returning);
        let _ = returning.out.lock().unwrap().shutdown(Shutdown::Both);
    });
    let ended = take(client, &node, &connection);
    connection.answers.lock().unwrap().ended = true;
    connection.changed.notify_all();
    let _ = node.shutdown(Shutdown::Both);
    ended
}

/// Read requests: writes are queued, everything else goes to the node.
fn take(client: TcpStream, mut node: &TcpStream, connection: &Connection) -> std::io::Result<()> {
    let mut client = BufReader::with_capacity(BUFFER_BYTES, client);
    loop {
        let mut frame = vec![0; HEADER_BYTES];
        client.read_exact(&mut frame[..1])?;
        if frame[0] != VERSION {
            node.write_all(&frame[..1])?;
            std::io::copy(&mut client, &mut node)?;
            return Ok(());
        }
        client.read_exact(&mut frame[1..])?;
        let length = u32::from_be_bytes([frame[5], frame[6], frame[7], frame[8]]) as usize;
        frame.resize(HEADER_BYTES + length, 0);
        client.read_exact(&mut frame[HEADER_BYTES..])?;
        let rows = match frame[4] {
            EXECUTE => 1,
            // Its type, and the number of statements.
            BATCH if length >= 3 => u32::from(u16::from_be_bytes([frame[10], frame[11]])),
            _ => {
                node.write_all(&frame)?;
                continue;
            }
        };
        let now = Instant::now();
        let server_at = connection.server.clerk.done_at(now, rows);
        let due = server_at.max(connection.clerk.done_at(now, rows));
        let mut answers = connection.answers.lock().unwrap();
        answers.waiting.push_back((due, [frame[2], frame[3]], rows));
        connection.changed.notify_all();
    }
}

/// Acknowledge queued writes when they are due.
fn answer(connection: &Connection) {
    loop {
        let mut answers = connection.answers.lock().unwrap();
        while answers.waiting.is_empty() && !answers.ended {
            answers = connection.changed.wait(answers).unwrap();
        }
        let Some((due, _, _)) = answers.waiting.front() else {
            return;
        };
        let wait = due.saturating_duration_since(Instant::now());
        drop(answers);
        thread::sleep(wait);
        let now = Instant::now();
        let (mut frames, mut done) = (Vec::new(), 0);
        let mut answers = connection.answers.lock().unwrap();
        while let Some((due, stream, rows)) = answers.waiting.front() {
            if *due > now {
                break;
            }
            // RESULT of the kind VOID, for this stream id.
            frames.extend([
                VERSION | 0x80,
                0,
                stream[0],
                stream[1],
                0x08,
                0,
                0,
                0,
                4,
                0,
                0,
                0,
                1,
            ]);
            done += u64::from(*rows);
            answers.waiting.pop_front();
        }
        drop(answers);
        // Counted first: the client may read the count as soon as it has the answers.
        connection
            .server
            .acknowledged
            .fetch_add(done, Ordering::Relaxed);
        if connection.out.lock().unwrap().write_all(&frames).is_err() {
            return;
        }
    }
}

/// Return the node's answers, a whole frame at a time.
fn give_back(node: TcpStream, connection: &Connection) -> std::io::Result<()> {
    let mut node = BufReader::with_capacity(BUFFER_BYTES, node);
    loop {
        let mut frame = vec![0; HEADER_BYTES];
        node.read_exact(&mut frame[..1])?;
        if frame[0] != VERSION | 0x80 {
            // No v4: the client sends no write that is answered here.
            let mut out = connection.out.lock().unwrap().try_clone()?;
            out.write_all(&frame[..1])?;
            std::io::copy(&mut node, &mut out)?;
            return Ok(());
        }
        node.read_exact(&mut frame[1..])?;
        let length = u32::from_be_bytes([frame[5], frame[6], frame[7], frame[8]]) as usize;
        frame.resize(HEADER_BYTES + length, 0);
        node.read_exact(&mut frame[HEADER_BYTES..])?;
        connection.out.lock().unwrap().write_all(&frame)?;
    }
}

fn start(run: impl FnOnce() + Send + 'static) {
    thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(run)
        .expect("a thread");
}
