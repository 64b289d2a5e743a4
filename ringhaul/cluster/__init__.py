"""The control plane: sessions through the official driver, the schema, readable errors."""
