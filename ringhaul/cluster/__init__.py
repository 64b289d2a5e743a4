"""The control plane: sessions through the official driver, the schema, errors in plain words."""
