"""Write rows: record batches to CSV, JSON Lines or Parquet, to any stream of bytes."""

from ringhaul.formats.write.options import OutputFormat, refuse_blank_lines

__all__ = ["OutputFormat", "refuse_blank_lines", "warm_up"]


def warm_up() -> None:
    """Load the kernels into this process, or compile them if no compiled ones are cached."""
    from ringhaul.formats.write import row_kernels

    assert row_kernels
