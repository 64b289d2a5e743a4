"""Write rows: record batches to CSV, JSON Lines or Parquet, to any stream of bytes."""

from ringhaul.formats.write.options import OutputFormat, refuse_blank_lines

__all__ = ["OutputFormat", "refuse_blank_lines"]
