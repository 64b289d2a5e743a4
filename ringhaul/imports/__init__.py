"""SSTables that nodes import by themselves, from a folder that they see."""
