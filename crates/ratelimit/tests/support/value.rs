//! The value of a window in Redis, written and read independently of the script.

const SLOT: usize = 5;
const HEADER: usize = 13;
/// The maximum number of times in a row. More are a ring.
pub(crate) const ROW: usize = 16;
const CYCLE: u64 = 1 << 40;

/// The value of a window with up to 16 times.
pub(crate) fn row(times_us: &[u64]) -> Vec<u8> {
    times_us.iter().flat_map(|time_us| slot(*time_us)).collect()
}

/// The value of a window with a header. The oldest time is in the slot `head`.
pub(crate) fn ring(slots: usize, head: usize, times_us: &[u64]) -> Vec<u8> {
    let mut value = header(head, times_us.len(), times_us[0]);
    value.resize(ring_length(slots), 0);
    for (index, time_us) in times_us.iter().enumerate() {
        let start = ring_length((head + index) % slots);
        value[start..start + SLOT].copy_from_slice(&slot(*time_us));
    }
    value
}

pub(crate) fn header(head: usize, count: usize, oldest_us: u64) -> Vec<u8> {
    let numbers = [head, count].map(|number| u32::try_from(number).unwrap().to_be_bytes());
    [numbers.concat(), slot(oldest_us).to_vec()].concat()
}

/// The bytes of a ring with this many slots.
pub(crate) const fn ring_length(slots: usize) -> usize {
    HEADER + slots * SLOT
}

/// The times of a window, oldest first, modulo 2^40.
pub(crate) fn times(value: &[u8]) -> Vec<u64> {
    if value.len() <= ROW * SLOT {
        return value.chunks_exact(SLOT).map(number).collect();
    }
    let slots: Vec<u64> = value[HEADER..].chunks_exact(SLOT).map(number).collect();
    let [head, count] = [0, 4].map(|at| usize::try_from(number(&value[at..at + 4])).unwrap());
    let times: Vec<u64> = (head..head + count).map(|index| slots[index % slots.len()]).collect();
    assert_eq!(number(&value[8..HEADER]), times[0], "the header has the oldest time");
    times
}

/// The newest time in what a command wrote at `start` of a value; `None` for a header.
pub(crate) fn newest(start: usize, written: &[u8]) -> Option<u64> {
    match start {
        0 if written.len() == HEADER => None,
        0 => times(written).last().copied(),
        _ => Some(number(written)),
    }
}

/// The microseconds since 1970 of a time in a slot, as of `now_us`.
pub(crate) const fn unix_us(time: u64, now_us: u64) -> u64 {
    now_us - (now_us % CYCLE + CYCLE - time) % CYCLE
}

/// Microseconds since 1970 as the time in a slot.
pub(crate) const fn time_of(unix_us: u64) -> u64 {
    unix_us % CYCLE
}

fn slot(time_us: u64) -> [u8; SLOT] {
    *time_us.to_be_bytes().last_chunk().unwrap()
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
}
