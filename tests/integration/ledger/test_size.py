"""The ledger's budget: under 200 bytes of Redis per unit, before and after the work."""

import redis

from ringhaul.ledger.ledger import Ledger

UNITS = 8_192
BYTES_PER_UNIT_MAX = 200


def ledger_bytes(client: redis.Redis) -> int:
    """Return the size of all keys with every element. The server's other memory, such as the slow
    log of a busy machine, does not count."""
    return sum(client.memory_usage(key, samples=0) for key in client.keys("*"))


def test_bytes_per_unit(ledger: Ledger, client: redis.Redis) -> None:
    ledger.create("ld-size", {"target": "shop.orders"}, "{}")
    for first in range(0, UNITS, 1024):
        specs = [
            f"0,{unit * 8_388_608},8388608,{unit * 71_234},71234,{unit * 71_235}"
            for unit in range(first, first + 1024)
        ]
        ledger.add_units("ld-size", 1, first, specs)
    ledger.seal("ld-size", 1, UNITS)
    split = ledger_bytes(client) / UNITS
    worked = 0
    while units := ledger.issue("ld-size", 64).units:
        for unit in units:
            ledger.claim("ld-size", unit, 1, f"{unit:016x}", 60_000)
            totals = {"rows": 71_234, "rejected": 0, "bytes": 8_388_608}
            result = "1,71230,4,8388608,1523,0,h1:4711"
            ledger.commit("ld-size", unit, 1, f"{unit:016x}", result, totals, {"17": 9})
            worked += 1
    done = ledger_bytes(client) / UNITS
    assert worked == UNITS
    assert split < done < BYTES_PER_UNIT_MAX
    # The hashes are in their compact encoding, and done units leave nothing else.
    assert client.object("encoding", "ringhaul:{ld-size}:units:31") == b"listpack"
    assert client.object("encoding", "ringhaul:{ld-size}:results:31") == b"listpack"
    left = {key.decode().split(":")[2] for key in client.keys("ringhaul:{ld-size}:*")}
    assert left == {
        *("meta", "spec", "units", "results", "done", "ends", "tot", "lat"),
        *("samples", "sampling", "events"),
    }
