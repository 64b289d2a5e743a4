"""Words of the options about values. Apart from `text_format` so that help texts load no numpy."""

#: Units of whole numbers that stand for a moment, a day or a time of day, in nanoseconds.
#: Cassandra's own unit of a timestamp is milliseconds; values in a finer unit are floored.
UNIT_NS = {
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "ns": 1,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
}
BLOB_FORMS = ("hex", "base64", "any")
OVERFLOWS = ("reject", "clamp")
#: Meaning of local times that clocks skip or repeat when they change.
CLOCK_CHANGES: dict[str, str] = {
    "first": "a repeated time is the first of its two moments, a skipped one is a reject",
    "second": "a repeated time is the second of its two moments, a skipped one is a reject",
    "forward": "a repeated time is the first, a skipped one moves forward with the clocks",
    "reject": "both are rejects",
}
#: How a fraction becomes a whole number; "none": it is a reject.
ROUNDINGS = ("none", "half-even", "half-up", "half-down", "up", "down", "floor", "ceiling")
#: Spellings that are read only if they are listed in `TextFormat.accept`.
ACCEPTED: dict[str, str] = {
    "fractions": "7.0 and 1e3 in whole-number columns if exact, 1.0 and 0.0 as booleans, PT1.5S",
    "booleans": "words for true and false in columns of numbers, as 1 and 0",
    "moments": "dates and times in columns of numbers, as units since the epoch",
    "hex-floats": "hexadecimal float, double and decimal, 0x1.8p3",
    "dates": "2024-1-31, or a time of 00:00, in date; 5:03:00 in time",
    "zones": "zones by name in timestamps: 10:00 CET, 10:00+01:00[Europe/Paris]",
    "uuids": "UUIDs without dashes, in braces, after urn:uuid:",
    "collections": "nested values without brackets, with single quotes, bare words, by position",
    "json-text": "JSON objects and arrays in text columns, kept as JSON",
}
