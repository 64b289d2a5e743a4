"""Format text as JSON strings."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SHORT = {0x08: "\\b", 0x09: "\\t", 0x0A: "\\n", 0x0C: "\\f", 0x0D: "\\r"}
_CONTROLS = range(0x20)


def json_strings(text: pa.StringArray) -> pa.StringArray:
    """Put each value in double quotes, escaped as JSON requires; nulls stay null."""
    if not len(text):
        return text
    data = _characters(text)
    # Plain comparisons first: most columns have nothing to escape, and the check is almost free.
    if ((data < 0x20) | (data == b'"'[0]) | (data == b"\\"[0])).any():
        text = _escaped(text, data)
    return pc.binary_join_element_wise('"', text, '"', "")


def _escaped(text: pa.StringArray, data: np.ndarray) -> pa.StringArray:
    used = np.zeros(256, np.bool_)
    used[data] = True
    # The backslash first: the other escapes add backslashes.
    if used[b"\\"[0]]:
        text = pc.replace_substring(text, "\\", "\\\\")
    if used[b'"'[0]]:
        text = pc.replace_substring(text, '"', '\\"')
    for code in _CONTROLS:
        if used[code]:
            escape = _SHORT.get(code, f"\\u{code:04x}")
            text = pc.replace_substring(text, chr(code), escape)
    return text


def _characters(text: pa.StringArray) -> np.ndarray:
    """Return the bytes of all values, and possibly of nulls."""
    _, offsets_buffer, data = text.buffers()
    if data is None:
        return np.zeros(0, np.uint8)
    offsets = np.frombuffer(offsets_buffer, np.int32)
    return np.frombuffer(data, np.uint8)[offsets[text.offset] : offsets[text.offset + len(text)]]
